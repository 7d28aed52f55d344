"""MineDraft's batch-parallel schedule: draft for one sub-batch while verifying the other."""

from __future__ import annotations

import numpy as np

from psdsim.commands import (
    NO_IDS,
    Admit,
    Admitted,
    Draft,
    Handle,
    Ids,
    Judge,
    Prefill,
    Score,
    Start,
    Verdict,
    WaitAll,
    WaitArrival,
)
from psdsim.schedules.base import Program, Schedule, drop


class MineDraft(Schedule):
    """Two sub-batches swap roles every step: one is verified while the other is drafted for.

    Source: MineDraft (arXiv 2603.18016) and its public plug-in. One draft-only step starts
    it. Until then a balance counter fills the smaller half; later arrivals join the half
    about to be drafted, and a request that leaves frees its place, so the halves can stay
    unequal. The cap counts both halves together. While one half is empty the steps
    are serial SD; the roles go on swapping, so an arrival can land in the empty half. A
    prefill step stalls both halves and does not swap them.
    """

    name = "minedraft"
    summary = "two sub-batches: the target verifies one while the draft GPU drafts for the other"
    source = "MineDraft (arXiv 2603.18016)"
    n_groups = 2
    overlaps = True
    min_k = 1
    supports_chunked = False

    def run(self) -> Program:
        """Yield the commands of the two-sub-batch pipeline."""
        halves: list[Ids] = [NO_IDS, NO_IDS]
        ready: int | None = None  # the half whose drafts wait for verification
        to_draft = 0
        decoded = False
        while True:
            admitted: Admitted = yield Admit(self.capacity)
            if admitted.new.size:
                # Nobody joins a half whose drafts are made: it would be verified undrafted.
                balanced = not decoded and ready is None
                yield from self._take_in(halves, admitted.new, None if balanced else to_draft)
                continue
            if not halves[0].size and not halves[1].size:
                ready = None
                if admitted.exhausted:
                    return
                yield WaitArrival()
                continue
            if ready is not None and not halves[ready].size:
                ready = None  # all of it was preempted
            if ready is None:
                other = 1 - to_draft
                if not halves[to_draft].size or not halves[other].size:
                    half = to_draft if halves[to_draft].size else other
                    yield from self._serial_step(halves, half)
                    decoded = True
                else:
                    draft = yield Start(Draft(halves[to_draft], self.k, group=to_draft))
                    self._forget(halves, draft)
                    yield WaitAll((draft,))
                    yield from self._drafted(to_draft, draft)
                    ready = to_draft
                to_draft = 1 - to_draft
                continue
            yield from self._parallel_step(halves, ready, to_draft)
            decoded = True
            ready = to_draft if halves[to_draft].size else None
            to_draft = 1 - to_draft

    def _take_in(self, halves: list[Ids], new: Ids, half: int | None) -> Program:
        """Put new requests into a half (None: by the balance counter) and prefill them."""
        joined: list[list[int]] = [[], []]
        for request in new.tolist():
            sizes = [halves[i].size + len(joined[i]) for i in (0, 1)]
            side = half if half is not None else int(sizes[1] < sizes[0])
            joined[side].append(request)
        first: Verdict = yield Prefill(new, group=half or 0)
        gone = NO_IDS if first.stopped is None else new[first.stopped]
        for i in (0, 1):
            if joined[i]:
                ids = drop(np.asarray(joined[i], dtype=np.intp), gone)
                halves[i] = np.concatenate((halves[i], ids))

    def _parallel_step(self, halves: list[Ids], ready: int, to_draft: int) -> Program:
        """Verify one half while drafting for the other."""
        handles: list[Handle] = []
        draft: Handle | None = None
        if halves[to_draft].size:
            draft = yield Start(Draft(halves[to_draft], self.k, group=to_draft))
            self._forget(halves, draft)
            handles.append(draft)
        if halves[ready].size:  # drafting for the other half may have preempted all of it
            score = yield Start(self._score(halves[ready], ready))
            handles.append(score)
            yield WaitAll(tuple(handles))
            verdict: Verdict = yield Judge(score)
            if verdict.stopped is not None:
                halves[ready] = halves[ready][~verdict.stopped]
        else:
            yield WaitAll(tuple(handles))
        if draft is not None:
            yield from self._drafted(to_draft, draft)

    def _serial_step(self, halves: list[Ids], half: int) -> Program:
        """One round of serial SD for the only half that has requests."""
        draft = yield Start(Draft(halves[half], self.k, group=half))
        self._forget(halves, draft)
        yield WaitAll((draft,))
        yield from self._drafted(half, draft)
        score = yield self._score(halves[half], half)
        verdict: Verdict = yield Judge(score)
        if verdict.stopped is not None:
            halves[half] = halves[half][~verdict.stopped]

    def _drafted(self, half: int, draft: Handle) -> Program:
        """Look at the drafts of a half, for subclasses that choose what is verified."""
        yield from ()

    def _score(self, ids: Ids, half: int) -> Score:
        """Return the pass that verifies a half."""
        return Score(ids, self.k, group=half)

    @staticmethod
    def _forget(halves: list[Ids], handle: Handle) -> None:
        """Drop requests that lost their KV to this pass."""
        for i in (0, 1):
            halves[i] = drop(halves[i], handle.preempted)
