"""Experiments: one run, or several schedules on paired randomness."""

from psdsim.run.basis import Basis
from psdsim.run.compare import Comparison, run_comparison
from psdsim.run.plan import Targets, breaking_rate, sweep_rates
from psdsim.run.result import SimulationResult
from psdsim.run.simulate import simulate

__all__ = [
    "Basis",
    "Comparison",
    "SimulationResult",
    "Targets",
    "breaking_rate",
    "run_comparison",
    "simulate",
    "sweep_rates",
]
