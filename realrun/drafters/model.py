"""A draft model: one forward a drafted token, its own cache."""

from __future__ import annotations

import time

import numpy as np
import torch

from realrun.drafters.base import Drafted, Drafter, Probabilities
from realrun.models.cache import Rows, by_slot
from realrun.models.forward import Forward
from realrun.sampling import Uniforms, draw
from realrun.workers.messages import Ints


class ModelDrafter(Drafter):
    """Drafts greedily, or samples at the target's temperature.

    The first forward feeds what the cache lacks (after a fully accepted round: the last draft
    and the bonus token), each further one the token drafted before.

    Parameters
    ----------
    forward
        The draft model on its cache.
    temperature
        0 drafts greedily; above it, tokens are sampled and their distributions handed over.
    seed
        Of the sampled drafts.
    vocab_size
        Tokens that the target knows, too; None: all are drafted.
    """

    def __init__(
        self,
        forward: Forward,
        temperature: float = 0.0,
        seed: int = 0,
        vocab_size: int | None = None,
    ) -> None:
        cache = forward.cache
        super().__init__(cache.n_slots, cache.max_length)
        self._forward = forward
        self._vocab_size = vocab_size
        self._temperature = temperature
        self._uniforms = Uniforms(seed, "draft", cache.max_length)
        self._cached = np.zeros(cache.n_slots, dtype=np.int64)
        self._cuda = forward.decoder.norm.is_cuda

    def clock(self) -> float:
        """Return the time when the device has done all it was given."""
        if self._cuda:
            torch.cuda.current_stream().synchronize()
        return time.perf_counter()

    def changed(self, slots: Ints, keep: Ints) -> None:
        """Keep cached what still holds; the last token is always fed anew."""
        self._cached[slots] = np.minimum(
            np.minimum(self._cached[slots], keep), self.known[slots] - 1
        )

    def draft(
        self, requests: Ints, slots: Ints, counts: Ints, *, confidences: bool = False
    ) -> Drafted:
        """Return drafted tokens and, if sampled, their distributions."""
        sorting = by_slot(slots)
        if sorting is None:
            return self._in_order(requests, slots, counts, confidences)
        order, back = sorting
        found = self._in_order(requests[order], slots[order], counts[order], confidences)
        return Drafted(found.tokens[back], _rows(found.laws, back), _rows(found.confidences, back))

    def _in_order(self, requests: Ints, slots: Ints, counts: Ints, confidences: bool) -> Drafted:
        starts, known = self._cached[slots], self.known[slots]
        rows = Rows(slots, starts, known - starts)
        fed = np.concatenate(
            [self.texts[s, a:b] for s, a, b in zip(slots, starts, known, strict=True)]
        )
        width = int(counts.max(initial=0))
        logits = self._forward(rows, fed, last_only=True)[:, : self._vocab_size]
        self._cached[slots] = known
        if not width:
            return Drafted(np.empty((slots.size, 0), dtype=np.int64))
        laws = None
        if self._temperature > 0:
            laws = np.zeros((slots.size, width, logits.shape[-1]), dtype=np.float32)
        out = np.zeros((slots.size, width), dtype=np.int64)
        active, picked = np.arange(slots.size), torch.empty(0)
        steps: list[tuple[Ints, torch.Tensor]] = []
        chances: list[torch.Tensor] = []
        for j in range(width):
            drafting = counts[active] > j
            if not drafting.all():
                left = torch.from_numpy(np.flatnonzero(drafting)).to(logits.device)
                active, picked = active[drafting], picked[left] if j else picked
                logits = logits if j else logits[left]
            if j:
                at = slots[active]
                rows = Rows(at, known[active] + (j - 1), np.ones(active.size, dtype=np.int64))
                logits = self._forward(rows, picked)[:, : self._vocab_size]
                self._cached[at] = known[active] + j
            if laws is None:
                picked = logits.argmax(dim=-1)  # stays on the device: no wait between tokens
                if confidences:
                    chances.append(probability(logits, picked))
            else:
                law = torch.softmax(logits.float() / self._temperature, dim=-1).cpu().numpy()
                laws[active, j] = law
                picked = torch.tensor(
                    [
                        draw(row, self._uniforms.at(int(requests[i]), int(known[i]) + j))
                        for i, row in zip(active.tolist(), law, strict=True)
                    ],
                    device=logits.device,
                )
            steps.append((active, picked))
        for j, (who, tokens) in enumerate(steps):
            out[who, j] = tokens.cpu().numpy()
        for i, (slot, count) in enumerate(zip(slots.tolist(), counts.tolist(), strict=True)):
            self.texts[slot, known[i] : known[i] + count] = out[i, :count]
        self.known[slots] = known + counts
        if not confidences:
            return Drafted(out, laws)
        sure = np.zeros((slots.size, width), dtype=np.float32)
        for j, (who, _) in enumerate(steps):
            drawn = chances[j].cpu().numpy() if laws is None else laws[who, j, out[who, j]]
            sure[who, j] = drawn
        return Drafted(out, laws, sure)


def probability(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row at one token.

    Parameters
    ----------
    logits
        Shape (n, vocab).
    tokens
        Shape (n,).
    """
    rows = logits.float()
    chosen = rows.gather(-1, tokens[:, None])[:, 0]
    return torch.exp(chosen - rows.logsumexp(dim=-1))


def _rows(values: Probabilities, order: Ints) -> Probabilities:
    return None if values is None else values[order]
