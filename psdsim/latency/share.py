"""A step time that is a share of another one: heads and layers that run on the target's weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from psdsim.hardware.fields import NonNegative
from psdsim.latency.base import Placement, StepTime, StepTimer
from psdsim.latency.roofline import RooflineStepTime
from psdsim.latency.simple import AffineStepTime, ConstantStepTime, ExponentialStepTime
from psdsim.latency.table import TableStepTime

Whole = Annotated[
    ConstantStepTime | AffineStepTime | ExponentialStepTime | TableStepTime | RooflineStepTime,
    Field(discriminator="kind"),
]
"""What a share can be of: every kind that is no share itself."""


class ShareStepTime(StepTime):
    """`share` x the time that `of` gives for the same pass, with its jitter and its padding.

    For a drafter that is a part of the target (EAGLE's layer, Medusa's heads) or as large as it
    (a block drafter on the target's backbone), whatever the batch.

    Examples
    --------
    >>> time = ShareStepTime(share=0.25, of=AffineStepTime(base_s=0.5, per_token_s=0.125))
    >>> time.bind(Placement())(2, 4, 100)
    0.25
    """

    kind: Literal["share"] = Field("share", description="A share of another step time.")
    share: NonNegative = Field(description="Of the other's time, >= 0.")
    of: Whole = Field(description="The other step time, on the same model and GPUs.")

    def resolve(self, base_dir: Path) -> Self:
        """Return the same share with the table it may be of read in."""
        read = self.of.resolve(base_dir)
        return self if read is self.of else self.model_copy(update={"of": read})

    def _bare_timer(self, placement: Placement) -> StepTimer:
        whole, share = self.of.bind(placement), self.share
        if whole.affine is not None:
            a, b, c, d = (share * figure for figure in whole.affine)
            return StepTimer(
                lambda n, t, kv: a + b * n + c * t + d * kv,
                affine=(a, b, c, d),
                jitter=whole.jitter,
                notes=whole.notes,
            )

        def seconds(n_seqs: Any, n_tokens: Any, n_kv_tokens: Any) -> Any:
            return share * whole(n_seqs, n_tokens, n_kv_tokens)

        return StepTimer(seconds, jitter=whole.jitter, notes=whole.notes)
