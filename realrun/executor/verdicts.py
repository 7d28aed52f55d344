"""What a finished target pass means: tokens emitted, requests stopped, drafts kept or dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from psdsim.commands import NO_IDS, Chances, Counts, Draft, Keep, Score, Verdict
from psdsim.errors import InputError
from realrun.executor.book import Book
from realrun.executor.devices import Pass
from realrun.executor.passes import ScoreInfo, per_request
from realrun.executor.roster import Roster
from realrun.executor.rules import Rule, Tested
from realrun.executor.texts import EMPTY, Text


class Verdicts:
    """Applies the acceptance rule and everything that follows from it.

    Parameters
    ----------
    roster, book
        Texts, records.
    rule
        Who is accepted.
    """

    def __init__(self, roster: Roster, book: Book, rule: Rule) -> None:
        self._roster = roster
        self._book = book
        self._rule = rule
        self.bonus = True
        """Whether the passes so far had a bonus row."""

    def judge(self, handle: Any, now: float) -> Verdict:
        """Answer `Judge`: emit what the pass confirmed."""
        work: Pass = handle
        score, info, result = work.command, work.info, work.result
        assert isinstance(score, Score)
        assert isinstance(info, ScoreInfo)
        assert result is not None
        running = self._roster.running
        texts = [running[request] for request in work.ids.tolist()]
        ends = np.cumsum(info.lengths)
        choices, laws = result.tokens.tolist(), result.probabilities
        tested: list[Tested] = []
        for text, drafts, end, n in zip(
            texts, info.drafts, ends.tolist(), info.lengths.tolist(), strict=True
        ):
            if not score.bonus:
                drafts = (
                    drafts.then(text.pending.first(1)) if drafts.tokens else text.pending.first(1)
                )
            rows = None if laws is None else laws[end - n : end]
            tested.append(Tested(text, drafts, choices[end - n : end], rows))
        if score.of is not None:
            self._drop(tested, score.of)
        if score.bonus and type(score.n) is int and score.n == 0:
            return self._plain(tested, now)
        self.bonus = score.bonus
        outcomes = self._rule.judge(tested, score)
        accepted = np.array([n for n, _ in outcomes], dtype=np.int64)
        n_tested: int | Counts = score.n if score.bonus else score.n + 1
        book = self._book
        book.n_accepted += int(accepted.sum())
        book.n_verified += int(per_request(n_tested, accepted.size).sum())
        stopped = np.zeros(accepted.size, dtype=np.bool_)
        for i, (one, (n, token)) in enumerate(zip(tested, outcomes, strict=True)):
            text = one.text
            text.n_rounds += 1
            text.tested.append(len(one.drafts.tokens))
            text.accepted.append(n)
            text.tentative = EMPTY
            if score.bonus:
                text.pending = EMPTY
            full = n == len(one.drafts.tokens)
            tail = [] if token is None or (full and not score.bonus) else [token]
            stopped[i] = self._emit(text, one.drafts.tokens[:n] + tail, now)
        return Verdict(accepted, n_tested, stopped if stopped.any() else None, NO_IDS)

    @staticmethod
    def _drop(tested: list[Tested], of: Any) -> None:
        """Count what was drafted and left out of the pass that has tested the rest."""
        for one in tested:
            drafted = of.blocks.pop(one.text.request, EMPTY)
            one.text.n_dropped += len(drafted.tokens) - len(one.drafts.tokens)
            one.text.pending = EMPTY

    def _plain(self, tested: list[Tested], now: float) -> Verdict:
        """Emit one token each: nothing was drafted."""
        stopped = np.zeros(len(tested), dtype=np.bool_)
        for i, one in enumerate(tested):
            one.text.n_rounds += 1
            law = None if one.laws is None else one.laws[0]
            token = self._rule.next_token(one.text, one.choices[0], law)
            stopped[i] = self._emit(one.text, [token], now)
        return Verdict(None, 0, stopped if stopped.any() else None, NO_IDS)

    def first_tokens(self, work: Pass, now: float) -> Verdict:
        """Emit the token that ends a prefill."""
        assert work.result is not None
        laws = work.result.probabilities
        stopped = np.zeros(work.ids.size, dtype=np.bool_)
        self._book.n_prefill_tokens += work.info[1]
        for i, request in enumerate(work.ids.tolist()):
            text = self._roster.running[request]
            self._rule.begin(text)
            law = None if laws is None else laws[i]
            token = self._rule.next_token(text, int(work.result.tokens[i]), law)
            stopped[i] = self._emit(text, [token], now)
        return Verdict(None, 0, stopped if stopped.any() else None, NO_IDS)

    def keep(self, command: Keep) -> None:
        """Answer `Keep`: the rest of a kept block is tentative, the rest of others discarded."""
        mask = command.mask if command.mask is not None else np.zeros(command.ids.size, np.bool_)
        fresh = command.untested if command.untested is not None else np.zeros_like(mask)
        every = zip(command.ids.tolist(), mask.tolist(), fresh.tolist(), strict=True)
        for request, kept, untested in every:
            text = self._roster.texts[request]
            assert text is not None
            # The first of the block was the row that the last pass tested (`Score.peek`).
            left = text.pending if untested else text.pending.behind(1)
            text.tentative = left if kept else EMPTY
            text.n_discarded += 0 if kept else len(left.tokens)
            text.pending = EMPTY

    def confidence(self, handle: Any, schedule: str) -> Chances:
        """Answer `Confidence`: the tape's under forced acceptance, else the drafter's own.

        Places that were not drafted are 0, and so are those of a request that has left.

        Raises
        ------
        psdsim.errors.InputError
            If the draft is not finished, or the drafter has no confidences.
        """
        work: Pass = handle
        command, result = work.command, work.result
        if not isinstance(command, Draft) or result is None:
            raise InputError(f"schedule '{schedule}' asks for confidences of no finished draft")
        lengths = work.lengths
        chances = np.zeros((work.ids.size, int(lengths.max(initial=0))))
        running = self._roster.running
        here = np.array([request in running for request in work.ids.tolist()], dtype=np.bool_)
        texts = [running[request] for request in work.ids[here].tolist()]
        after = per_request(command.after, work.ids.size)[here]
        believed = self._rule.chances(texts, chances.shape[1], after)
        if believed is None and result.confidences is None:
            raise InputError(
                f"schedule '{schedule}' asks for confidences and the drafter has none",
                expected="a draft model (n-gram proposes for certain), and a schedule that says "
                "that it asks (Schedule.asks_confidence)",
            )
        chances[here] = result.confidences[here] if believed is None else believed  # type: ignore[index]
        return np.where(np.arange(chances.shape[1]) < lengths[:, None], chances, 0.0)

    def _emit(self, text: Text, tokens: list[int], now: float) -> bool:
        counted, stopped = self._roster.emit(text, tokens, now)
        self._book.n_emitted += counted
        if stopped:
            self._book.n_finished += 1
            self._rule.finished(text)
        return stopped
