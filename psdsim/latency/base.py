"""What a step-time model is: frozen parameters that, bound to hardware, give a fast timer."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from psdsim.hardware import Gpu, ModelShape
from psdsim.hardware.fields import PositiveCount

Coefficients = tuple[float, float, float, float]
"""(base_s, per_sequence_s, per_token_s, per_kv_token_s)."""


@dataclass(frozen=True)
class Placement:
    """A model and the GPUs it is spread over; None where a step time doesn't need to know."""

    shape: ModelShape | None = None
    gpu: Gpu | None = None
    n_gpus: int = 1


class StepTimer:
    """Seconds of one forward pass as a function of its shape.

    Parameters
    ----------
    seconds
        (n_seqs, n_tokens, n_kv_tokens) -> s; works on numbers and on arrays.
    affine
        Its coefficients, if it is affine in the three and unpadded.
    jitter
        Law of the model's own jitter.
    notes
        Where flags are gathered while it is used (extrapolation); shared with `seconds`.
    """

    def __init__(
        self,
        seconds: Callable[[Any, Any, Any], Any],
        *,
        affine: Coefficients | None = None,
        jitter: Literal["none", "exponential"] = "none",
        notes: set[str] | None = None,
    ) -> None:
        self._seconds = seconds
        self.affine = affine
        self.jitter = jitter
        self.notes: set[str] = notes if notes is not None else set()
        self._memo: dict[tuple[float, float, float], float] = {}
        if affine is not None:
            # Closures beat attribute look-ups; the engine calls this for every pass.
            a, b, c, d = affine
            self._call: Callable[[float, float, float], float] = lambda n, t, kv: (
                a + b * n + c * t + d * kv
            )
        else:
            self._call = self._remembered

    def __call__(self, n_seqs: float, n_tokens: float, n_kv_tokens: float) -> float:
        """Return the seconds of one pass.

        Parameters
        ----------
        n_seqs
            Sequences in the pass, >= 1.
        n_tokens
            New tokens fed, over all sequences, >= n_seqs.
        n_kv_tokens
            Tokens already in the KV cache, over all sequences, >= 0.
        """
        return self._call(n_seqs, n_tokens, n_kv_tokens)

    def over(
        self, n_seqs: ArrayLike, n_tokens: ArrayLike, n_kv_tokens: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the seconds of many passes, bit for bit those of single calls.

        Parameters
        ----------
        n_seqs, n_tokens, n_kv_tokens
            As in a single call; they broadcast against each other.
        """
        n, t, kv = np.broadcast_arrays(*map(np.asarray, (n_seqs, n_tokens, n_kv_tokens)))
        if self.affine is not None:
            a, b, c, d = self.affine
            # The same products and sums in the same order as in a single call.
            return np.asarray(a + b * n + c * t + d * kv, dtype=np.float64)
        flat = [self(*shape) for shape in zip(n.flat, t.flat, kv.flat, strict=True)]
        return np.array(flat, dtype=np.float64).reshape(n.shape)

    def _remembered(self, n_seqs: float, n_tokens: float, n_kv_tokens: float) -> float:
        key = (n_seqs, n_tokens, n_kv_tokens)
        value = self._memo.get(key)
        if value is None:
            if len(self._memo) > 65536:
                self._memo.clear()
            value = self._memo[key] = float(self._seconds(n_seqs, n_tokens, n_kv_tokens))
        return value


class StepTime(BaseModel):
    """A step-time model of a scenario file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cuda_graph_sizes: tuple[PositiveCount, ...] | None = Field(
        None,
        description="Token counts with a captured CUDA graph: a pass is padded up to the next "
        "one; above the largest it runs unpadded. null: no padding.",
    )

    @field_validator("cuda_graph_sizes")
    @classmethod
    def _ascending(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None and (not value or list(value) != sorted(set(value))):
            raise ValueError(f"found {list(value)}; expected sizes in ascending order, each once")
        return value

    def resolve(self, base_dir: Path) -> Self:
        """Return the same model with files it names read in (most name none)."""
        return self

    def bind(self, placement: Placement) -> StepTimer:
        """Return the timer of this model on a placement.

        Raises
        ------
        psdsim.errors.InputError
            If the model needs a shape or a GPU that the placement lacks.
        """
        timer = self._bare_timer(placement)
        if self.cuda_graph_sizes is None:
            return timer
        sizes = self.cuda_graph_sizes
        bare = timer

        def padded(n_seqs: float, n_tokens: float, n_kv_tokens: float) -> float:
            place = bisect_left(sizes, n_tokens)
            if place == len(sizes):
                return bare(n_seqs, n_tokens, n_kv_tokens)
            # In pure decoding a padded token is a padded sequence, too.
            n = sizes[place] if n_seqs == n_tokens else n_seqs
            return bare(n, sizes[place], n_kv_tokens)

        return StepTimer(padded, jitter=bare.jitter, notes=bare.notes)

    @abstractmethod
    def _bare_timer(self, placement: Placement) -> StepTimer:
        """Return the timer without padding."""
