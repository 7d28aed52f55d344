"""From commands to work: which tokens are fed where, and what a drafting phase brings back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psdsim.commands import Draft, Ids, Score
from psdsim.errors import InputError
from realrun.executor.devices import Devices, Pass
from realrun.executor.roster import Roster
from realrun.executor.texts import EMPTY, Block, Text, flat
from realrun.workers import DraftWork, TargetWork
from realrun.workers.messages import Ints


@dataclass
class ScoreInfo:
    """What `Verdicts` needs to read a target pass.

    Parameters
    ----------
    drafts
        The fed drafts of each request.
    lengths
        Tokens fed for each, shape (n,): the last confirmed one and its drafts.
    n_kv
        Tokens in the cache before the pass, over all requests.
    """

    drafts: list[Block]
    lengths: Ints
    n_kv: int


def per_request(n: int | Ints, size: int) -> Ints:
    """Return a count given as one number or as an array, as an array of shape (size,)."""
    return np.broadcast_to(np.asarray(n, dtype=np.int64), (size,))


class Passes:
    """Builds and starts passes.

    Parameters
    ----------
    roster
        The texts.
    devices
        Where passes run.
    confidences
        Whether the schedule asks for the drafter's confidences.
    """

    def __init__(self, roster: Roster, devices: Devices, confidences: bool = False) -> None:
        self._roster = roster
        self._devices = devices
        self._confidences = confidences

    def _texts(self, ids: Ids) -> list[Text]:
        running = self._roster.running
        return [running[request] for request in ids.tolist()]

    def start(self, command: Draft | Score) -> Pass:
        """Give a pass to its device."""
        work = self._devices.new_pass(command, command.ids)
        texts = self._texts(command.ids)
        if isinstance(command, Score):
            self._devices.target.submit(work, lambda: self._score(work, command, texts))
        else:
            if self._devices.draft is None:
                raise InputError("the schedule drafts and there is no drafter")
            work.info = per_request(command.n, command.ids.size)
            self._devices.draft.submit(work, lambda: self._draft(work, command, texts))
        return work

    def prefill(self, ids: Ids, group: int) -> list[Pass]:
        """Start both models on the prompts; the target's pass comes last."""
        texts = self._texts(ids)
        prompts = [text.tokens for text in texts]
        tokens, lengths = flat(prompts)
        slots = _slots(texts)
        requests = np.asarray(ids, dtype=np.int64)
        nothing = np.zeros(slots.size, dtype=np.int64)
        works: list[Pass] = []
        if self._devices.draft is not None:
            work = self._devices.new_pass(None, ids)
            work.info = (group, int(tokens.size))
            feed = DraftWork(requests, slots, nothing, tokens, lengths, nothing)
            self._devices.draft.submit(work, lambda: feed)
            for text in texts:
                text.believed = list(text.tokens)
                text.agreed = len(text.tokens)
            works.append(work)
        own = self._devices.new_pass(None, ids)
        own.info = (group, int(tokens.size))
        target = TargetWork(slots, nothing, lengths, tokens, last_only=True)
        self._devices.target.submit(own, lambda: target)
        works.append(own)
        return works

    def _draft(self, work: Pass, command: Draft, texts: list[Text]) -> DraftWork:
        counts: Ints = work.info
        after = per_request(command.after, counts.size).tolist()
        keep = np.empty(counts.size, dtype=np.int64)
        missing: list[list[int]] = []
        for i, text in enumerate(texts):
            keep[i], behind = text.correction(after[i])
            missing.append(behind)
            text.believed[keep[i] :] = behind
            text.n_drafted += int(counts[i])
        tokens, lengths = flat(missing)
        requests = np.asarray(command.ids, dtype=np.int64)
        return DraftWork(requests, _slots(texts), keep, tokens, lengths, counts, self._confidences)

    def take_in(self, work: Pass) -> None:
        """Put drafted tokens beside their texts."""
        assert work.result is not None
        counts: Ints = work.info
        laws = work.result.probabilities
        running = self._roster.running
        rows = work.result.tokens.tolist()
        for i, (request, count) in enumerate(zip(work.ids.tolist(), counts.tolist(), strict=True)):
            text = running.get(request)
            if text is None or work.void:
                # It stopped while this was drafted, or nobody wants it any more.
                text = self._roster.texts[request]
                assert text is not None
                text.n_discarded += count
                continue
            tokens = rows[i][:count]
            block = Block(tokens, None if laws is None else laws[i, :count])
            text.pending = work.blocks[request] = block
            text.believed.extend(tokens)

    def _score(self, work: Pass, command: Score, texts: list[Text]) -> TargetWork:
        wanted = per_request(command.n, len(texts)).tolist()
        drafts: list[Block] = []
        fed: list[list[int]] = []
        of: Any = command.of
        for text, n in zip(texts, wanted, strict=True):
            block = text.tentative
            if of is not None:
                block = of.blocks.get(text.request, EMPTY)
            elif command.bonus and len(block.tokens) < n:
                block = block.then(text.pending) if block.tokens else text.pending
            if len(block.tokens) < n:
                raise InputError(
                    f"a Score tests {n} drafts of request {text.request}, which has "
                    f"{len(block.tokens)}: its draft has not ended"
                )
            drafts.append(block.first(n))
            fed.append(text.tokens[-1:] + drafts[-1].tokens)
        tokens, lengths = flat(fed)
        starts = np.array([text.n_cached for text in texts], dtype=np.int64)
        work.info = ScoreInfo(drafts, lengths, int(starts.sum()))
        return TargetWork(_slots(texts), starts, lengths, tokens, last_only=False)


def _slots(texts: list[Text]) -> Ints:
    return np.array([text.slot for text in texts], dtype=np.int64)
