"""Predict what speculative and parallel speculative decoding do to LLM serving.

>>> import psdsim
>>> scenario = psdsim.Scenario.builtin({"workload.n_requests": 32})
>>> round(psdsim.simulate(scenario, "ar").metrics["acceptance_length"], 3)
1.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psdsim.api import (
        Comparison,
        SimulationResult,
        Targets,
        breaking_rate,
        compare,
        simulate,
        sweep_rates,
        validate,
    )
    from psdsim.errors import InputError
    from psdsim.scenario import Scenario

__version__ = "0.1.0"

_HOME = {
    "Comparison": "psdsim.api",
    "InputError": "psdsim.errors",
    "Scenario": "psdsim.scenario",
    "SimulationResult": "psdsim.api",
    "Targets": "psdsim.api",
    "breaking_rate": "psdsim.api",
    "compare": "psdsim.api",
    "simulate": "psdsim.api",
    "sweep_rates": "psdsim.api",
    "validate": "psdsim.api",
}

__all__ = [
    "Comparison",
    "InputError",
    "Scenario",
    "SimulationResult",
    "Targets",
    "__version__",
    "breaking_rate",
    "compare",
    "simulate",
    "sweep_rates",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the command line starts faster."""
    if name not in _HOME:
        raise AttributeError(f"module 'psdsim' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
