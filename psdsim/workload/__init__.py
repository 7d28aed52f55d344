"""What is asked of the server: when requests arrive, how long they are, and trace files."""

from psdsim.workload.generate import generate
from psdsim.workload.kinds import (
    BatchWorkload,
    ConcurrencyWorkload,
    GammaWorkload,
    PoissonWorkload,
    TraceWorkload,
    Workload,
)
from psdsim.workload.lengths import EmpiricalLengths, Lengths, LognormalLengths, draw_lengths
from psdsim.workload.requests import Requests, describe

__all__ = [
    "BatchWorkload",
    "ConcurrencyWorkload",
    "EmpiricalLengths",
    "GammaWorkload",
    "Lengths",
    "LognormalLengths",
    "PoissonWorkload",
    "Requests",
    "TraceWorkload",
    "Workload",
    "describe",
    "draw_lengths",
    "generate",
]
