"""Who is in flight: admission, KV memory, preemption, leaving, and the batches of the moment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import NO_IDS, Chunks, Counts, Ids
from psdsim.engine.batch import Batch
from psdsim.engine.kv import KvPool
from psdsim.engine.queue import WaitingQueue
from psdsim.engine.state import FINISHED, PREFILLING, RUNNING, WAITING, RequestState
from psdsim.errors import InputError
from psdsim.verdict import Tape


class Roster:
    """The requests of one replica between admission and their last token.

    Parameters
    ----------
    state, queue, kv
        The request table, the waiting line, the KV pool.
    tape
        Where acceptance rows are kept; None if nothing is drafted.
    token_budget
        `max_num_batched_tokens`.
    replica
        Index, for the records.
    """

    def __init__(
        self,
        state: RequestState,
        queue: WaitingQueue,
        kv: KvPool,
        tape: Tape | None,
        token_budget: int,
        replica: int,
    ) -> None:
        self.state = state
        self.queue = queue
        self.kv = kv
        self._tape = tape
        self._budget = token_budget
        self._replica = replica
        self.running: dict[int, None] = {}
        """Ids in flight, in the order of admission."""
        self._prefilling: dict[int, int] = {}
        """Prompt tokens of requests whose prompt is computed in pieces."""
        self._batches: dict[int, Batch] = {}
        self.open_tokens: NDArray[np.int64] | None = None
        """Drafted tokens of each request that are neither tested nor given up; None where no
        request can be preempted and so nobody asks."""
        if kv.n_blocks is not None:
            self.open_tokens = np.zeros(len(state), dtype=np.int64)

    # --- batches -------------------------------------------------------------------------

    def batch(self, ids: Ids) -> Batch:
        """Return the batch of an ids array, kept as long as the schedule keeps the array."""
        batch = self._batches.get(id(ids))
        if batch is None:
            # Settle all: the new batch may hold requests of an old one.
            self.forget_batches()
            batch = Batch(ids, self.state)
            self._batches[id(ids)] = batch
        return batch

    def settle(self) -> None:
        """Bring the request table up to date."""
        for batch in self._batches.values():
            batch.settle(self.state)

    def forget_batches(self) -> None:
        """Bring the request table up to date and drop all batches."""
        self.settle()
        self._batches.clear()

    # --- admission -----------------------------------------------------------------------

    def admit(self, capacity: int, now: float) -> Ids:
        """Take in whole prompts, first come first served, up to the token budget of one pass."""
        taken: list[int] = []
        budget = self._budget
        while self.queue.n_waiting and len(self.running) < capacity:
            request = self.queue.peek()
            tokens = self._prompt_of(request)
            if tokens > self._budget and not self.state.emitted[request]:
                raise InputError(
                    f"request {request} has {tokens} prompt tokens and one pass takes "
                    f"{self._budget}",
                    expected="chunked_prefill: true or a larger budget",
                    where="engine.max_num_batched_tokens",
                )
            # What a preempted request must recompute can outgrow the budget: it goes alone then.
            if (tokens > budget and taken) or not self._kv_fits(tokens):
                break
            budget -= tokens
            self._take(request, tokens, now, RUNNING)
            taken.append(request)
        return np.asarray(taken, dtype=np.intp) if taken else NO_IDS

    def admit_chunks(self, capacity: int, n_decode_tokens: int, now: float) -> Chunks | None:
        """Fill the rest of the token budget with prompt pieces, those begun before first."""
        budget = self._budget - n_decode_tokens
        pieces: list[tuple[int, int, bool]] = []
        for request, total in self._prefilling.items():
            if budget <= 0:
                break
            left = total - int(self.state.computed[request])
            piece = min(left, budget)
            pieces.append((request, piece, piece == left))
            budget -= piece
        while budget > 0 and self.queue.n_waiting and len(self.running) < capacity:
            request = self.queue.peek()
            tokens = self._prompt_of(request)
            if not self._kv_fits(tokens):
                break
            self._take(request, tokens, now, PREFILLING)
            self._prefilling[request] = tokens
            piece = min(tokens, budget)
            pieces.append((request, piece, piece == tokens))
            budget -= piece
        if not pieces:
            return None
        ids, n, completes = zip(*pieces, strict=True)
        return Chunks(np.array(ids, dtype=np.intp), np.array(n), np.array(completes))

    @property
    def exhausted(self) -> bool:
        """Nobody waits, nobody is being prefilled and nobody will come."""
        return not self._prefilling and self.queue.exhausted

    def still_there(self, chunks: Chunks) -> NDArray[np.bool_]:
        """Say which pieces belong to requests that were not preempted since admission."""
        return np.asarray(self.state.phase[chunks.ids] == PREFILLING)

    def chunks_done(self, ids: Ids, n_tokens: Counts, completes: NDArray[np.bool_]) -> Ids:
        """Count computed pieces; return the requests whose prompt is complete."""
        self.state.computed[ids] += n_tokens
        done = ids[completes]
        self.state.phase[done] = RUNNING
        for request in done.tolist():
            del self._prefilling[request]
        return done

    def _prompt_of(self, request: int) -> int:
        return int(self.state.prompt_tokens[request] + self.state.emitted[request])

    def _kv_fits(self, tokens: int) -> bool:
        kv = self.kv
        if kv.surely_fits(1, tokens, len(self.running)):
            return True
        self.settle()
        assert kv.n_blocks is not None
        used = kv.blocks_used(np.fromiter(self.running, dtype=np.intp))
        return used + kv.blocks_for(tokens + 1) <= kv.n_blocks

    def _take(self, request: int, tokens: int, now: float, phase: int) -> None:
        self.queue.pop()
        s = self.state
        self.running[request] = None
        s.phase[request] = phase
        s.computed[request] = 0
        s.replica[request] = self._replica
        if s.admitted_s[request] != s.admitted_s[request]:  # NaN: not admitted before
            s.admitted_s[request] = now
        if self._tape is not None:
            s.base[request] = self._tape.take_slot(request)
        self.kv.n_context += tokens

    # --- emission and leaving --------------------------------------------------------------

    def first_tokens(self, ids: Ids, now: float) -> NDArray[np.bool_] | None:
        """Emit the token that ends a prefill; return who is finished by it (None: nobody)."""
        s = self.state
        s.emitted[ids] += 1
        new = np.isnan(s.first_token_s[ids])
        s.first_token_s[ids[new]] = now
        s.last_emit_s[ids] = now
        self.kv.n_context += int(ids.size)
        done: NDArray[np.bool_] = s.emitted[ids] >= s.output_tokens[ids]
        if not done.any():
            return None
        self.leave(ids[done], now)
        return done

    def leave(self, ids: Ids, now: float) -> None:
        """Let finished requests go (batches must be settled)."""
        s = self.state
        s.finish_s[ids] = now
        s.phase[ids] = FINISHED
        self.kv.n_context -= int((s.prompt_tokens[ids] + s.emitted[ids]).sum())
        for request in ids.tolist():
            del self.running[request]
            if self._tape is not None:
                self._tape.release(int(s.base[request]))
        self.queue.finished(int(ids.size))

    # --- preemption --------------------------------------------------------------------------

    def reserve(self, ids: Ids, n_tokens: int, group: int) -> tuple[Ids, int]:
        """Reserve look-ahead slots; preempt the latest admitted until all fits.

        Returns
        -------
        tuple
            Requests preempted, and drafted tokens that became void with them.
        """
        kv = self.kv
        if kv.n_blocks is None:
            return NO_IDS, 0
        kv.reserved[group] = (ids, n_tokens)
        kv.largest_reserve = max(kv.largest_reserve, n_tokens)
        if kv.surely_fits(0, 0, len(self.running)):
            return NO_IDS, 0
        self.settle()
        victims: list[int] = []
        while kv.blocks_used(np.fromiter(self.running, dtype=np.intp)) > kv.n_blocks:
            victims.append(self._preempt_latest())
        if not victims:
            return NO_IDS, 0
        self.forget_batches()
        gone = np.asarray(victims, dtype=np.intp)
        for key, (held_by, n) in list(kv.reserved.items()):
            kv.reserved[key] = (held_by[~np.isin(held_by, gone)], n)
        return gone, self._void(gone)

    def _preempt_latest(self) -> int:
        request, _ = self.running.popitem()
        s = self.state
        self._prefilling.pop(request, None)
        s.phase[request] = WAITING
        s.computed[request] = 0
        s.n_preemptions[request] += 1
        self.kv.n_context -= self._prompt_of(request)
        if self._tape is not None:
            self._tape.release(int(s.base[request]))
        self.queue.front.appendleft(request)
        return request

    def _void(self, gone: Ids) -> int:
        assert self.open_tokens is not None
        void = int(self.open_tokens[gone].sum())
        self.open_tokens[gone] = 0
        return void
