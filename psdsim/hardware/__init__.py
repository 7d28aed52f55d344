"""What the models and the GPUs are: shapes, parameter counts, data sheets.

Nothing here knows about time; :mod:`psdsim.latency` turns these facts into seconds.
"""

from psdsim.hardware.gpus import Gpu, gpu, gpu_names
from psdsim.hardware.hf_config import shape_from_config
from psdsim.hardware.models import model_names, model_shape
from psdsim.hardware.params import ParameterCounts, expert_coverage
from psdsim.hardware.shape import Mla, ModelShape

__all__ = [
    "Gpu",
    "Mla",
    "ModelShape",
    "ParameterCounts",
    "expert_coverage",
    "gpu",
    "gpu_names",
    "model_names",
    "model_shape",
    "shape_from_config",
]
