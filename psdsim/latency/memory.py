"""How many KV-cache blocks fit beside the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from psdsim.errors import InputError
from psdsim.hardware import Gpu, ModelShape


def kv_blocks(
    shape: ModelShape,
    gpu: Gpu,
    n_gpus: int,
    *,
    block_size: int = 16,
    gpu_memory_utilization: float = 0.9,
    kv_dtype_bytes: float = 2.0,
    other: Sequence[ModelShape] = (),
) -> int:
    """Return the KV blocks that fit into the GPUs' memory.

    A drafter on GPUs of its own has a pool of its own: ask for each and take the smaller, as a
    token needs its place in both. Sliding windows save nothing here: each layer keeps the whole
    context, the cautious reading.

    Parameters
    ----------
    shape, gpu, n_gpus
        The model and what it is spread over; weights are split evenly.
    block_size
        Tokens per block.
    gpu_memory_utilization
        Share of the memory for weights and cache (activations take the rest).
    kv_dtype_bytes
        Bytes per KV element.
    other
        Models that share the GPUs (a drafter): their weights take memory, and every token
        needs their KV as well.

    Raises
    ------
    psdsim.errors.InputError
        If the weights alone do not fit, or leave no room for a block.

    Examples
    --------
    >>> from psdsim.hardware import gpu, model_shape
    >>> alone = kv_blocks(model_shape("Qwen/Qwen3-32B"), gpu("H100-SXM"), 4)
    >>> alone > kv_blocks(model_shape("Qwen/Qwen3-32B"), gpu("H100-SXM"), 4,
    ...                   other=[model_shape("Qwen/Qwen3-0.6B")])
    True
    """
    _check(n_gpus, block_size, gpu_memory_utilization, kv_dtype_bytes)
    models = (shape, *other)
    room = gpu.memory_bytes * gpu_memory_utilization
    weights = sum(model.weight_bytes for model in models) / n_gpus
    names = " and ".join(model.name for model in models)
    have = f"{n_gpus} x {gpu.name}"
    if weights > room:
        raise InputError(
            f"the weights of {names} take {weights / 2**30:.1f} GiB on each of {have} and "
            f"{room / 2**30:.1f} GiB are to be used",
            expected="more GPUs, larger ones or a quantised model",
        )
    per_token = sum(
        model.kv_bytes_per_token(dtype_bytes=kv_dtype_bytes, n_gpus=n_gpus) for model in models
    )
    blocks = int((room - weights) // (per_token * block_size))
    if blocks < 1:
        raise InputError(f"{names} leave no room for a KV block on {have}", expected="more memory")
    return blocks


def _check(n_gpus: object, block_size: object, utilization: float, dtype_bytes: float) -> None:
    for name, value in (("n_gpus", n_gpus), ("block_size", block_size)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} is {value!r}", expected="a whole number of at least 1")
    if not 0.0 < utilization <= 1.0:
        raise InputError(
            f"gpu_memory_utilization is {utilization!r}", expected="a share above 0 and at most 1"
        )
    if not 0.0 < dtype_bytes < math.inf:
        raise InputError(f"kv_dtype_bytes is {dtype_bytes!r}", expected="a number above 0")
