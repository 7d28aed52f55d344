"""PEARL's own ablations: the schedule without post-verify, and without pre-verify."""

from __future__ import annotations

import numpy as np

from psdsim.commands import (
    NO_IDS,
    Counts,
    Draft,
    Ids,
    Judge,
    Keep,
    Mask,
    Score,
    Start,
    Verdict,
    WaitAll,
)
from psdsim.schedules.base import Program, Schedule, drop
from psdsim.schedules.intake import take_in
from psdsim.schedules.pearl import Pearl


class NoPostVerify(Pearl):
    """PEARL that pre-verifies only: what is drafted beside a pass over a block is thrown away.

    After an accepted pre-verify test one pass tests the k-1 tentative tokens and adds a token of
    the target's own; then pre-verify again, whatever came out. That last token is obtained here
    as the test of the void block's first draft: under the exact-match rule it is the same token
    whether the draft is accepted or corrected. (It counts as tested, not as discarded.)
    """

    name = "pearl-no-post-verify"
    summary = "pearl without post-verify: the draft made beside a pass over a block is thrown away"
    source = "PEARL (arXiv 2408.11850), Table 4; para_sd_wo_2 in its code"

    def _lives_on(self, hit: Mask, tentative: Counts) -> Mask:
        keep: Mask = hit & (tentative == 0)
        return keep


class NoPreVerify(Schedule):
    """PEARL that post-verifies only: after a rejection a step drafts, and nothing is tested.

    The next pass tests all k of that block and the first token of the block drafted meanwhile,
    k+1 in all; later ones k. (The published code skips the first of the k+1 and so accepts it
    unseen; that is not lossless and not copied.) A request that only drafts is not in the target
    pass; where all do, there is none.
    """

    name = "pearl-no-pre-verify"
    summary = "pearl without pre-verify: after a rejection one step only drafts"
    source = "PEARL (arXiv 2408.11850), Table 4; para_sd_wo_1 in its code, made lossless"
    overlaps = True
    bonus = False
    min_k = 1
    supports_chunked = False

    def run(self) -> Program:
        """Yield the commands of the loop."""
        k = self.k
        ids: Ids = NO_IDS
        tentative: Counts = np.empty(0, dtype=np.int64)
        fresh: Mask = np.empty(0, dtype=np.bool_)  # has no block yet: it only drafts now
        while True:
            new: Ids | None = yield from take_in(self.capacity, ids.size)
            if new is None:
                return
            ids = np.concatenate((ids, new))
            tentative = np.concatenate((tentative, np.zeros(new.size, dtype=np.int64)))
            fresh = np.concatenate((fresh, np.ones(new.size, dtype=np.bool_)))
            draft = yield Start(Draft(ids, k, after=tentative))
            if draft.preempted.size:
                here = ~np.isin(ids, draft.preempted)
                ids, tentative, fresh = drop(ids, draft.preempted), tentative[here], fresh[here]
            if fresh.all():  # or nobody is left
                yield WaitAll((draft,))
                yield Keep(draft, ids, fresh, untested=fresh)
                tentative, fresh = np.full(ids.size, k, dtype=np.int64), np.zeros_like(fresh)
                continue
            tested = ~fresh
            asked = ids if tested.all() else ids[tested]
            score = yield Start(Score(asked, tentative[tested], bonus=False, peek=draft))
            yield WaitAll((draft, score))
            verdict: Verdict = yield Judge(score)
            assert verdict.hit is not None
            stopped = np.zeros_like(fresh)
            if verdict.stopped is not None:
                stopped[tested] = verdict.stopped
            keep = fresh.copy()
            keep[tested] = verdict.hit
            keep &= ~stopped
            yield Keep(draft, ids, keep, untested=fresh)
            tentative = np.where(fresh, k, np.where(keep, k - 1, 0))[~stopped]
            fresh, ids = ~keep[~stopped], ids[~stopped] if stopped.any() else ids
