"""The Python interface: simulate, compare with theory beside it, validate."""

from psdsim.api.compare import compare
from psdsim.api.formulas import theory_table
from psdsim.api.validate import Validation, all_checks, validate
from psdsim.run import (
    Basis,
    Comparison,
    SimulationResult,
    Targets,
    breaking_rate,
    simulate,
    sweep_rates,
)

__all__ = [
    "Basis",
    "Comparison",
    "SimulationResult",
    "Targets",
    "Validation",
    "all_checks",
    "breaking_rate",
    "compare",
    "simulate",
    "sweep_rates",
    "theory_table",
    "validate",
]
