"""The Python interface: simulate, compare with theory beside it, validate."""

from psdsim.api.compare import compare
from psdsim.api.validate import Validation, validate
from psdsim.run import Basis, Comparison, SimulationResult, simulate

__all__ = [
    "Basis",
    "Comparison",
    "SimulationResult",
    "Validation",
    "compare",
    "simulate",
    "validate",
]
