"""Where simulation and closed form must agree: families of checks, each with its own theory."""

from psdsim.api.gates.ablations import AblationCell, ablation_cells
from psdsim.api.gates.acceptance import AcceptanceCell, acceptance_cells
from psdsim.api.gates.adaptive import AdaptiveCell, adaptive_cells
from psdsim.api.gates.finite import FiniteCell, finite_cells
from psdsim.api.gates.jitter import JitterCell, jitter_cells
from psdsim.api.gates.makespan import BarrierCell, MakespanCell, makespan_cells
from psdsim.api.gates.pairs import PairCell, pair_cells
from psdsim.api.gates.rows import LIMIT, P_LIMIT, Mutation, Row
from psdsim.api.gates.steady import GridCell, default_grid, theory

__all__ = [
    "LIMIT",
    "P_LIMIT",
    "AblationCell",
    "AcceptanceCell",
    "AdaptiveCell",
    "BarrierCell",
    "FiniteCell",
    "GridCell",
    "JitterCell",
    "MakespanCell",
    "Mutation",
    "PairCell",
    "Row",
    "ablation_cells",
    "acceptance_cells",
    "adaptive_cells",
    "default_grid",
    "finite_cells",
    "jitter_cells",
    "makespan_cells",
    "pair_cells",
    "theory",
]
