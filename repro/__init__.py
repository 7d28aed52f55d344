"""Every published method against its paper's own figures: paper value, ours, deviation, verdict."""
