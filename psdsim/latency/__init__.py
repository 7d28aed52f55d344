"""Step times: how long one forward pass takes, from parameters, measurements or data sheets."""

from typing import Annotated

from pydantic import Field

from psdsim.latency.base import Placement, StepTime, StepTimer
from psdsim.latency.fit import AffineFit, fit_affine
from psdsim.latency.jitter import JitterLaw, JitterStream
from psdsim.latency.memory import kv_blocks
from psdsim.latency.roofline import RooflineStepTime
from psdsim.latency.share import ShareStepTime
from psdsim.latency.simple import AffineStepTime, ConstantStepTime, ExponentialStepTime
from psdsim.latency.table import TableStepTime

StepTimeModel = Annotated[
    ConstantStepTime
    | AffineStepTime
    | ExponentialStepTime
    | TableStepTime
    | RooflineStepTime
    | ShareStepTime,
    Field(discriminator="kind"),
]
"""Any step-time model, told apart by ``kind``."""

__all__ = [
    "AffineFit",
    "AffineStepTime",
    "ConstantStepTime",
    "ExponentialStepTime",
    "JitterLaw",
    "JitterStream",
    "Placement",
    "RooflineStepTime",
    "ShareStepTime",
    "StepTime",
    "StepTimeModel",
    "StepTimer",
    "TableStepTime",
    "fit_affine",
    "kv_blocks",
]
