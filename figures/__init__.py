"""Figures: one script each, `compute(quick) -> DataFrame` and `draw(frame) -> Figure`."""
