"""The command line: `realrun run`, `profile`, `train`, `distill`."""
