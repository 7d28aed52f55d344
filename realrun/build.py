"""Runners by name: what a worker builds once it is on its device."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from psdsim.errors import InputError
from realrun.drafters import ModelDrafter, NgramDrafter
from realrun.models.load import load_model
from realrun.models.make import make_forward
from realrun.target import TargetRunner
from realrun.workers.pin import DeviceName
from realrun.workers.serve import Runner

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class RunnerSpec:
    """Everything a worker needs to build its runner; can be pickled.

    Parameters
    ----------
    model
        What `realrun.models.load.load_model` takes; for a drafter also ``ngram``, or
        ``early-exit:N`` (the first N layers of `target`).
    device
        Where it runs.
    n_slots, max_length
        Size of its cache.
    dtype
        ``float32``, ``bfloat16`` or ``float16``.
    temperature
        0: greedy.
    seed
        Of sampled drafts.
    target
        Model of the target, which ``early-exit`` is cut from.
    vocab_size
        Tokens that both models know: sizes of one family pad a vocabulary differently, and what
        lies beyond is never chosen. None: all of the model's.
    """

    model: str
    device: DeviceName
    n_slots: int
    max_length: int
    dtype: str = "float32"
    temperature: float = 0.0
    seed: int = 0
    target: str = ""
    vocab_size: int | None = None

    def drafter(self) -> Runner:
        """Build a drafter."""
        if self.model == "ngram":
            return NgramDrafter(self.n_slots, self.max_length)
        _own_stream(self.device)
        source, n_layers = drafter_source(self.model, self.target)
        model = load_model(source, DTYPES[self.dtype], str(self.device.torch), n_layers)
        forward = make_forward(model.decoder, self.n_slots, self.max_length)
        return ModelDrafter(forward, self.temperature, self.seed, self.vocab_size)

    def runner(self) -> Runner:
        """Build the target."""
        _own_stream(self.device)
        model = load_model(self.model, DTYPES[self.dtype], str(self.device.torch))
        forward = make_forward(model.decoder, self.n_slots, self.max_length)
        return TargetRunner(forward, self.temperature, self.vocab_size)


def drafter_source(spec: str, target: str) -> tuple[str, int | None]:
    """Return the model that a drafter loads, and how many of its layers (None: all).

    Raises
    ------
    psdsim.errors.InputError
        If ``early-exit`` has no number of layers.
    """
    kind, _, layers = spec.partition(":")
    if kind != "early-exit":
        return spec, None
    if not layers.isdecimal() or int(layers) < 1:
        raise InputError(
            f"drafter is '{spec}'", expected="early-exit:N with N layers", where="--draft"
        )
    return target, int(layers)


def _own_stream(device: DeviceName) -> None:
    """Give the calling thread a CUDA stream of its own, so that two threads of one GPU overlap."""
    if device.kind == "cuda":
        torch.cuda.set_device(device.torch)
        torch.cuda.set_stream(torch.cuda.Stream(device.torch))  # type: ignore[no-untyped-call]
