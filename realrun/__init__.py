"""Run psdsim's schedules on real torch models, measure them, and calibrate the simulator."""
