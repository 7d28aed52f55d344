"""Step times in closed form: constant, affine, exponential."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from psdsim.hardware.fields import NonNegative
from psdsim.latency.base import Placement, StepTime, StepTimer


class _OneTime(StepTime):
    """A time that is the same whatever is in the pass, so that padding can't change it."""

    @field_validator("cuda_graph_sizes")
    @classmethod
    def _no_padding(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None:
            raise ValueError(
                "cuda_graph_sizes has no effect on a time that does not depend on the tokens; "
                "expected null, or another kind of step time"
            )
        return value


class ConstantStepTime(_OneTime):
    """The same time for every pass, whatever is in it.

    Examples
    --------
    >>> ConstantStepTime(time_s=0.5).bind(Placement())(8, 40, 9000)
    0.5
    """

    kind: Literal["constant"] = Field("constant", description="One time for every pass.")
    time_s: NonNegative = Field(description="Seconds of a pass.")

    def _bare_timer(self, placement: Placement) -> StepTimer:
        time_s = self.time_s
        return StepTimer(lambda n, t, kv: time_s, affine=(time_s, 0.0, 0.0, 0.0))


class AffineStepTime(StepTime):
    """base + per_sequence * sequences + per_token * tokens fed + per_kv_token * cached tokens.

    Reading the weights gives the base, arithmetic the token slope, reading the cache the KV slope.

    Examples
    --------
    >>> AffineStepTime(base_s=0.5, per_token_s=0.25).bind(Placement())(2, 4, 100)
    1.5
    """

    kind: Literal["affine"] = Field("affine", description="Affine in sequences, tokens, KV tokens.")
    base_s: NonNegative = Field(description="Time of an empty pass, s.")
    per_sequence_s: NonNegative = Field(0.0, description="Added for each sequence, s.")
    per_token_s: NonNegative = Field(0.0, description="Added for each token fed, s.")
    per_kv_token_s: NonNegative = Field(0.0, description="Added for each token in the cache, s.")

    def _bare_timer(self, placement: Placement) -> StepTimer:
        a, b, c, d = self.base_s, self.per_sequence_s, self.per_token_s, self.per_kv_token_s
        return StepTimer(lambda n, t, kv: a + b * n + c * t + d * kv, affine=(a, b, c, d))


class ExponentialStepTime(_OneTime):
    """Exponentially distributed with one mean, whatever is in the pass: for queueing checks."""

    kind: Literal["exponential"] = Field("exponential", description="Exponential, for M/M/1.")
    mean_s: NonNegative = Field(description="Mean seconds of a pass.")

    def _bare_timer(self, placement: Placement) -> StepTimer:
        mean_s = self.mean_s
        return StepTimer(
            lambda n, t, kv: mean_s, affine=(mean_s, 0.0, 0.0, 0.0), jitter="exponential"
        )
