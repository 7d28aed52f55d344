"""The target's side of a pass: feed rows, answer with its own choice after each token."""

from __future__ import annotations

import time

import numpy as np
import torch

from realrun.models.cache import Index, Rows, by_slot, token_places
from realrun.models.forward import Forward
from realrun.workers.messages import Done, DraftWork, TargetWork


class TargetRunner:
    """Runs target passes; the rule that judges drafts lies with the coordinator.

    Parameters
    ----------
    forward
        The target model on its cache.
    temperature
        0: only the most likely tokens are handed over; above it, the distributions too.
    vocab_size
        Tokens that the draft model knows, too; None: all are chosen from.
    """

    def __init__(
        self, forward: Forward, temperature: float = 0.0, vocab_size: int | None = None
    ) -> None:
        self._forward = forward
        self._temperature = temperature
        self._vocab_size = vocab_size

    def run(self, work: TargetWork | DraftWork) -> Done:
        """Run one pass."""
        assert isinstance(work, TargetWork)
        start = time.perf_counter()
        rows, tokens = Rows(work.slots, work.starts, work.lengths), work.tokens
        sorting = by_slot(work.slots)
        back: Index | None = None
        if sorting is not None:
            order, back = sorting
            places = token_places(rows.lengths, order)
            rows = Rows(rows.slots[order], rows.starts[order], rows.lengths[order])
            tokens = tokens[places]
            if not work.last_only:
                back = np.empty_like(places)
                back[places] = np.arange(places.size)
        logits = self._forward(rows, tokens, last_only=work.last_only)
        logits = logits[:, : self._vocab_size]
        # Copying to the CPU waits for the device, so the end is the end of the work.
        choices = logits.argmax(dim=-1).cpu().numpy()
        laws = None
        if self._temperature > 0:
            laws = torch.softmax(logits.float() / self._temperature, dim=-1).cpu().numpy()
        if back is not None:
            choices, laws = choices[back], None if laws is None else laws[back]
        return Done(start, time.perf_counter(), choices, laws)
