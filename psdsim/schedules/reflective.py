"""Serial decoding whose target pass reads the drafts twice, with a prompt in between."""

from __future__ import annotations

from psdsim.commands import Chunks, Handle, Ids, Score
from psdsim.errors import InputError
from psdsim.schedules.base import Answered
from psdsim.schedules.serial import SpeculativeDecoding


class ReflectiveDecoding(SpeculativeDecoding):
    """Draft k tokens; one pass scores them and, behind a prompt, a second copy of them.

    Source: Reflective Verification (arXiv 2505.18629). Only the rows differ from serial SD: the
    token before the drafts, k drafts, the prompt, k drafts again.

    Parameters
    ----------
    k, capacity, chunked
        See `Schedule`.
    prompt
        Tokens between the two copies, >= 0.
    """

    name = "reflective"
    summary = "draft k tokens and verify them in one pass that reads them twice"
    source = "Reflective Verification (arXiv 2505.18629)"

    def __init__(self, k: int, capacity: int, *, chunked: bool = False, prompt: int = 24) -> None:
        super().__init__(k, capacity, chunked=chunked)
        if prompt < 0:
            raise InputError(f"the prompt has {prompt} tokens", expected="at least 0")
        self.prompt = prompt

    @property
    def rows(self) -> int:
        """Most tokens that one request feeds to one target pass."""
        return 2 * self.k + 1 + self.prompt if self.k else 1

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        """Score the proposal in the wider pass."""
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        return (yield Score(ids, self.k, of=draft, rows=self.rows, chunks=chunks))
