"""Is a schedule's greedy text that of plain decoding? Mismatches are excused only by a near-tie.

In floating point a batch of another shape adds in another order, so two logits that are
nearly equal may change places; after that the texts rightly differ. A first mismatch is
excused where the target itself, run on the common text, has its two best logits closer than a
tolerance, and both texts chose among these two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from realrun.build import DTYPES
from realrun.executor.setup import Job, Tokens
from realrun.models.decoder import CausalAttention, Decoder
from realrun.models.load import load_model

TOLERANCE = {"float32": 1e-3, "bfloat16": 0.25, "float16": 0.03}
"""Distance of the two best logits below which a change of places is rounding."""


@dataclass(frozen=True)
class Mismatch:
    """The first place where two texts of a request differ.

    Parameters
    ----------
    request, position
        Which request, which output token.
    gap
        Distance of the target's two best logits there.
    excused
        Whether that is rounding.
    """

    request: int
    position: int
    gap: float
    excused: bool


@dataclass(frozen=True)
class Comparison:
    """Texts of one run against those of plain decoding.

    Parameters
    ----------
    n_requests
        Texts compared.
    n_tokens
        Tokens compared, up to first mismatches.
    mismatches
        First mismatches.
    tolerance
        The gap that excuses.
    """

    n_requests: int
    n_tokens: int
    mismatches: tuple[Mismatch, ...]
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether every mismatch is excused."""
        return all(mismatch.excused for mismatch in self.mismatches)


def compare_texts(
    decoder: Decoder, job: Job, plain: list[Tokens], texts: list[Tokens], tolerance: float
) -> Comparison:
    """Compare output tokens request by request.

    Parameters
    ----------
    decoder
        The target, with rotary tables for the longest text.
    job
        Prompts.
    plain, texts
        Output tokens of plain decoding and of the schedule.
    tolerance
        Gap of logits that excuses a mismatch.
    """
    found: list[Mismatch] = []
    n_tokens = 0
    for request, (a, b) in enumerate(zip(plain, texts, strict=True)):
        place = first_difference(a, b)
        n_tokens += a.size if place is None else place
        if place is not None:
            gap, best = _gap(decoder, np.concatenate((job.prompts[request], a[:place])))
            chosen = {int(x[place]) for x in (a, b) if place < x.size}
            excused = gap < tolerance and len(chosen) == 2 and chosen == best
            found.append(Mismatch(request, place, gap, excused))
    return Comparison(len(plain), n_tokens, tuple(found), tolerance)


def compare(
    target: str, dtype: str, job: Job, plain: list[Tokens], texts: list[Tokens]
) -> Comparison:
    """Compare output tokens; the target is loaded only if something differs."""
    tolerance = TOLERANCE[dtype]
    if all(first_difference(a, b) is None for a, b in zip(plain, texts, strict=True)):
        return Comparison(len(plain), int(sum(a.size for a in plain)), (), tolerance)
    decoder = load_model(target, DTYPES[dtype]).decoder
    decoder.set_positions(job.max_length)
    return compare_texts(decoder, job, plain, texts, tolerance)


def first_difference(a: Tokens, b: Tokens) -> int | None:
    """Return the first place where two texts differ (in length, too), or None."""
    n = min(a.size, b.size)
    places = np.flatnonzero(a[:n] != b[:n])
    if places.size:
        return int(places[0])
    return None if a.size == b.size else n


@torch.inference_mode()
def _gap(decoder: Decoder, text: Tokens) -> tuple[float, set[int]]:
    """Return the distance of the two best logits behind a text, and the two tokens."""
    config = decoder.config
    device = decoder.norm.device
    attend = CausalAttention(1, text.size, config.n_heads // config.n_kv_heads, device)
    last = torch.tensor([text.size - 1], device=device)
    logits = decoder(torch.from_numpy(text).to(device), attend, last)[0].float()
    best = torch.topk(logits, 2)
    return float(best.values[0] - best.values[1]), {int(i) for i in best.indices}
