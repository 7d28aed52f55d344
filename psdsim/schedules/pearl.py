"""PEARL: draft the next block while the target verifies, with pre-verify and post-verify."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from psdsim.commands import (
    NO_IDS,
    Counts,
    Draft,
    Ids,
    Judge,
    Keep,
    Look,
    Mask,
    Score,
    Start,
    Verdict,
    View,
    WaitAll,
)
from psdsim.schedules.base import Program, Schedule, drop
from psdsim.schedules.intake import take_in


class Pearl(Schedule):
    """Every step drafts k tokens while one target pass tests what is tentative, plus one.

    Source: PEARL (arXiv 2408.11850), Algorithm 2; in batches as nano-PEARL runs it, with one
    flag per sequence and one barrier per step. A request with no tentative tokens is in
    *pre-verify*: the pass tests the first token of the block being drafted. If accepted, the
    other k-1 become tentative and it is in *post-verify*: the next pass tests these and the
    first token of the block drafted meanwhile. There is no bonus token. A rejection costs the
    rest of the old block and the whole new one.
    """

    name = "pearl"
    summary = (
        "draft the next block during verification; pre-verify tests its first token, post-verify "
        "the rest"
    )
    source = "PEARL (arXiv 2408.11850), Algorithm 2"
    overlaps = True
    bonus = False
    min_k = 1
    supports_chunked = False
    looks: ClassVar[bool] = False
    """Whether it asks for estimates of step times to choose how much to draft (`_length`)."""

    def run(self) -> Program:
        """Yield the commands of the pre-verify / post-verify loop."""
        k = self.k
        ids: Ids = NO_IDS
        tentative: Counts = np.empty(0, dtype=np.int64)
        while True:
            new: Ids | None = yield from take_in(self.capacity, ids.size)
            if new is None:
                return
            ids = np.concatenate((ids, new))
            tentative = np.concatenate((tentative, np.zeros(new.size, dtype=np.int64)))
            if self.looks:
                k = self._length(ids.size, (yield Look()))
            draft = yield Start(Draft(ids, k, after=tentative))
            if draft.preempted.size:
                left = drop(ids, draft.preempted)
                tentative = tentative[np.isin(ids, left)]
                ids = left
                if not ids.size:
                    yield WaitAll((draft,))
                    continue
            score = yield Start(Score(ids, tentative, bonus=False, peek=draft))
            yield WaitAll((draft, score))
            verdict: Verdict = yield Judge(score)
            assert verdict.hit is not None
            keep = self._lives_on(verdict.hit, tentative)
            if verdict.stopped is not None:
                keep = keep & ~verdict.stopped
            yield Keep(draft, ids, keep)
            tentative = np.where(keep, k - 1, 0)
            if verdict.stopped is not None:
                tentative = tentative[~verdict.stopped]
                ids = ids[~verdict.stopped]

    def _length(self, n_seqs: int, view: View) -> int:
        """Return what to draft for each of so many requests, 1 to `k` tokens."""
        return self.k

    def _lives_on(self, hit: Mask, tentative: Counts) -> Mask:
        """Return whose new block is kept, given who passed all tests and what was tentative."""
        return hit


class DraftAhead(Pearl):
    """Draft the next round during verification, betting on full acceptance.

    The comparison that MineDraft's plug-in calls PEARL, made sound: per request, the draft
    made during verification is valid only if all was accepted *and* the bonus token equals
    its first token; a request whose draft is void gets one token from the next target pass
    while k are drafted for it. Under the exact-match rule the bonus token equals the drafted
    one exactly when a draft at the bonus position is accepted. So a valid draft is PEARL's
    post-verify state (k-1 tokens still to test, the first one confirmed), a void one is its
    pre-verify state, and the two schedules emit the same tokens at the same steps: the class
    is PEARL's, under the name that the comparison uses.
    """

    name = "pearl-draft-ahead"
    summary = (
        "draft the next round during verification; valid only if all is accepted and the bonus "
        "token matches"
    )
    source = "MineDraft's plug-in (force_pearl), made sound per request"
