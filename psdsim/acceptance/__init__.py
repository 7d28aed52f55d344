"""How drafts fare with the target: models of acceptance, and conversions between its figures."""

from typing import Annotated

from pydantic import Field

from psdsim.acceptance.base import UNPAIRED, AcceptanceModel, JudgedBy, TapeModel
from psdsim.acceptance.beta import BetaAcceptance
from psdsim.acceptance.convert import (
    acceptance_length_from_alpha,
    acceptance_length_from_unconditional,
    acceptance_rate_from_alpha,
    alpha_from_acceptance_length,
    alpha_from_acceptance_rate,
    conditional_from_unconditional,
    length_with_bonus,
    length_without_bonus,
    unconditional_from_conditional,
)
from psdsim.acceptance.counts import alpha_from_histogram, unconditional_from_histogram
from psdsim.acceptance.ensemble import EnsembleAcceptance
from psdsim.acceptance.iid import IidAcceptance, MeanLengthAcceptance
from psdsim.acceptance.markov import MarkovAcceptance, MarkovRoundsAcceptance
from psdsim.acceptance.mat import MatConvention, alpha_from_mat, mat_from_alpha
from psdsim.acceptance.position import HistogramAcceptance, PositionAcceptance
from psdsim.acceptance.relaxed import RelaxedAcceptance, relax
from psdsim.acceptance.replay import Replay

Acceptance = Annotated[
    IidAcceptance
    | MeanLengthAcceptance
    | PositionAcceptance
    | HistogramAcceptance
    | MarkovAcceptance
    | MarkovRoundsAcceptance
    | BetaAcceptance
    | RelaxedAcceptance
    | EnsembleAcceptance
    | Replay,
    Field(discriminator="kind"),
]
"""Any acceptance model, told apart by ``kind``."""

__all__ = [
    "UNPAIRED",
    "Acceptance",
    "AcceptanceModel",
    "BetaAcceptance",
    "EnsembleAcceptance",
    "HistogramAcceptance",
    "IidAcceptance",
    "JudgedBy",
    "MarkovAcceptance",
    "MarkovRoundsAcceptance",
    "MatConvention",
    "MeanLengthAcceptance",
    "PositionAcceptance",
    "RelaxedAcceptance",
    "Replay",
    "TapeModel",
    "acceptance_length_from_alpha",
    "acceptance_length_from_unconditional",
    "acceptance_rate_from_alpha",
    "alpha_from_acceptance_length",
    "alpha_from_acceptance_rate",
    "alpha_from_histogram",
    "alpha_from_mat",
    "conditional_from_unconditional",
    "length_with_bonus",
    "length_without_bonus",
    "mat_from_alpha",
    "relax",
    "unconditional_from_conditional",
    "unconditional_from_histogram",
]
