"""Who waits, who runs, who is done: first come, first served, one slot a request."""

from __future__ import annotations

import heapq
import time

import numpy as np

from psdsim.commands import NO_IDS, Ids
from realrun.executor.book import request_columns
from realrun.executor.setup import MAX_NUM_BATCHED_TOKENS, Job
from realrun.executor.texts import Text


class Roster:
    """Texts in flight and the columns of all requests.

    Parameters
    ----------
    job
        The work.
    n_slots
        Rows of the caches.
    zero
        `time.perf_counter` at the start of the run.
    """

    def __init__(self, job: Job, n_slots: int, zero: float) -> None:
        self._job = job
        self._zero = zero
        self._n = len(job.prompts)
        self._next = 0
        self._free = list(range(n_slots))
        self.running: dict[int, Text] = {}
        self.texts: list[Text | None] = [None] * self._n
        columns = self.columns = request_columns(self._n)
        columns["arrival_s"][:] = job.arrival_s
        columns["prompt_tokens"][:] = [prompt.size for prompt in job.prompts]
        columns["output_tokens"][:] = job.output_tokens

    def n_waiting(self, now: float) -> int:
        """Return the requests that have arrived and are not admitted."""
        return int(np.searchsorted(self._job.arrival_s, now, side="right")) - self._next

    @property
    def exhausted(self) -> bool:
        """Whether nothing waits and nothing will arrive."""
        return self._next == self._n

    def admit(self, capacity: int, now: float) -> Ids:
        """Take in who has arrived while there is room, up to the token budget of one pass."""
        room = min(capacity, len(self.running) + len(self._free)) - len(self.running)
        most = min(self.n_waiting(now), room)
        n, budget = 0, MAX_NUM_BATCHED_TOKENS
        while n < most and self._job.prompts[self._next + n].size <= budget:
            budget -= self._job.prompts[self._next + n].size
            n += 1
        if not n:
            return NO_IDS
        ids = np.arange(self._next, self._next + n, dtype=np.intp)
        self._next += n
        for request in ids.tolist():
            prompt = self._job.prompts[request]
            text = Text(
                request, heapq.heappop(self._free), prompt.tolist(), prompt.size,
                int(self._job.output_tokens[request]),
            )  # fmt: skip
            self.running[request] = self.texts[request] = text
            self.columns["admitted_s"][request] = now
        return ids

    def wait_for_arrival(self) -> None:
        """Sleep until the next request arrives."""
        if not self.exhausted:
            due = self._zero + float(self._job.arrival_s[self._next])
            time.sleep(max(due - time.perf_counter(), 0.0))

    def emit(self, text: Text, tokens: list[int], now: float) -> tuple[int, bool]:
        """Append tokens to a text; return how many count, and whether it has stopped."""
        if not text.n_emitted and tokens:
            self.columns["first_token_s"][text.request] = now
        before = text.n_emitted
        text.tokens.extend(tokens)
        eos = self._job.eos_id
        if eos is not None and eos in tokens:
            text.n_wanted = min(text.n_wanted, before + tokens.index(eos) + 1)
        counted = min(text.n_emitted, text.n_wanted) - min(before, text.n_wanted)
        stopped = text.n_emitted >= text.n_wanted
        if stopped:
            self.columns["finish_s"][text.request] = now
            self.columns["output_tokens"][text.request] = text.n_wanted
            del self.running[text.request]
            heapq.heappush(self._free, text.slot)
        return counted, stopped

    def settle(self) -> None:
        """Write the counts of every text into the columns."""
        for text in self.texts:
            if text is not None:
                columns, i = self.columns, text.request
                columns["n_rounds"][i] = text.n_rounds
                columns["n_drafted_tokens"][i] = text.n_drafted
                columns["n_accepted_tokens"][i] = sum(text.accepted)
