"""Acceptance rules: how many drafts stand, and which token the target puts behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psdsim.acceptance import AcceptanceModel
from psdsim.commands import Chances, Counts, Ids, Score
from psdsim.errors import InputError
from psdsim.verdict import PLAIN, Proposals, Signals, Tape, block_length, make_judge
from realrun.executor.texts import Block, Text
from realrun.sampling import Uniforms, draw


@dataclass
class Tested:
    """One request in a finished target pass.

    Parameters
    ----------
    text
        The request.
    drafts
        The drafts that the pass tests.
    choices
        The target's most likely token after the prefix and after each fed draft.
    laws
        Its distributions there, shape (len(choices), vocab); None with greedy decoding.
    """

    text: Text
    drafts: Block
    choices: list[int]
    laws: NDArray[np.float32] | None


Outcome = tuple[int, int | None]
"""(accepted drafts, the target's token behind them; None where no row for it was fed)."""


class Rule(Protocol):
    """Judges the requests of one pass."""

    def judge(self, tested: list[Tested], score: Score) -> list[Outcome]:
        """Return the outcome of each request.

        Parameters
        ----------
        tested
            The requests, in the order of `score.ids`.
        score
            The command.
        """

    def chances(self, texts: list[Text], n: int, after: Counts) -> Chances | None:
        """Return what is believed of n drafts of each text behind `after` tentative tokens.

        None: the drafter is to be asked.
        """

    def begin(self, text: Text) -> None:
        """Hear that a request has come in."""

    def next_token(self, text: Text, choice: int, law: NDArray[np.float32] | None) -> int:
        """Return the target's own next token, where nothing was drafted."""

    def finished(self, text: Text) -> None:
        """Hear that a request has left."""


class GreedyRule:
    """A draft stands where the target would have chosen it (Stern et al. 2018)."""

    def judge(self, tested: list[Tested], score: Score) -> list[Outcome]:
        """Return the first mismatch of each request, and the target's own choice there."""
        outcomes: list[Outcome] = []
        for one in tested:
            drafts, choices = one.drafts.tokens, one.choices
            n = 0
            for draft, choice in zip(drafts, choices, strict=False):
                if draft != choice:
                    break
                n += 1
            outcomes.append((n, choices[n] if n < len(choices) else None))
        return outcomes

    def chances(self, texts: list[Text], n: int, after: Counts) -> Chances | None:
        """Leave it to the drafter."""
        return None

    def begin(self, text: Text) -> None:
        """Nothing is kept by request."""

    def next_token(self, text: Text, choice: int, law: NDArray[np.float32] | None) -> int:
        """Return the target's choice."""
        return choice

    def finished(self, text: Text) -> None:
        """Nothing is kept by request."""


class SamplingRule:
    """Speculative sampling: accept with min(1, p/q), else draw from what p has beyond q.

    Source: Leviathan et al. 2023 (arXiv 2211.17192), Algorithm 1; Chen et al. 2023
    (arXiv 2302.01318), Algorithm 2. The output follows the target's distribution exactly.

    Parameters
    ----------
    seed
        The user's seed.
    n_positions
        Longest text, tokens.
    """

    def __init__(self, seed: int, n_positions: int) -> None:
        self._accept = Uniforms(seed, "accept", n_positions)
        self._target = Uniforms(seed, "target", n_positions)

    def judge(self, tested: list[Tested], score: Score) -> list[Outcome]:
        """Test the drafts of each request in turn."""
        return [self._one(one) for one in tested]

    def chances(self, texts: list[Text], n: int, after: Counts) -> Chances | None:
        """Refuse: who sees how probable a sampled draft is can change the law of the text.

        The residual makes up for a rejected draft only if drafts are tested whatever they are;
        a selector that tests the probable ones favours them.

        Raises
        ------
        psdsim.errors.InputError
            Always.
        """
        raise InputError(
            "drafts that are tested by how probable they are change the law of sampled text",
            expected="greedy decoding (temperature 0) with a schedule that asks for confidences",
        )

    def _one(self, one: Tested) -> Outcome:
        assert one.laws is not None
        request, position = one.text.request, len(one.text.tokens)
        drafts = one.drafts
        for i, token in enumerate(drafts.tokens):
            p = one.laws[i]
            q = None if drafts.laws is None else drafts.laws[i]
            proposed = 1.0 if q is None else float(q[token])
            if self._accept.at(request, position + i) * proposed >= float(p[token]):
                u = self._target.at(request, position + i)
                return i, draw(self.residual(p, q, token), u)
        n = len(drafts.tokens)
        if n == len(one.choices):
            return n, None
        return n, draw(one.laws[n], self._target.at(request, position + n))

    @staticmethod
    def residual(
        p: NDArray[np.float32], q: NDArray[np.float32] | None, token: int
    ) -> NDArray[np.float32]:
        """Return max(p - q, 0), not normalised; a certain proposal has q = 1 at its token."""
        if q is None:
            left = p.copy()
            left[token] = 0.0
        else:
            # A draft model with a shorter padded vocabulary gives the tokens beyond no chance.
            left = p.copy()
            left[: q.size] = np.maximum(p[: q.size] - q, 0.0)
        # Rounding can leave nothing where p and q agree; then p itself is as good.
        return left if left.any() else p

    def begin(self, text: Text) -> None:
        """Uniforms are drawn when they are asked for."""

    def next_token(self, text: Text, choice: int, law: NDArray[np.float32] | None) -> int:
        """Draw the token from the target's distribution."""
        assert law is not None
        return draw(law, self._target.at(text.request, len(text.tokens)))

    def finished(self, text: Text) -> None:
        """Drop the request's uniforms."""
        self._accept.forget(text.request)
        self._target.forget(text.request)


@dataclass
class _Judged:
    ids: Ids
    cursor: NDArray[np.int64]
    n: int


class ForcedRule:
    """Verdicts from an acceptance model's tape instead of the real test, as the simulator's are.

    So are confidences. The text means nothing, but times are real and step counts are those of
    the simulator.

    Parameters
    ----------
    model
        The acceptance model.
    output_tokens
        Tokens asked for by every request, shape (n_requests,).
    capacity
        Most requests in flight.
    k
        The schedule's draft length.
    seed
        Of the tape.
    proposals
        What is known of the drafter beyond whether it is right.
    """

    def __init__(
        self,
        model: AcceptanceModel,
        output_tokens: NDArray[np.int64],
        capacity: int,
        k: int,
        seed: int,
        proposals: Proposals = PLAIN,
    ) -> None:
        self._tape = self._signals = None
        if model.judged_by != "replay":
            self._tape = Tape(model, output_tokens, capacity, seed, 0)
            self._signals = Signals(proposals, self._tape)
        self._judge = make_judge(model, k, self._tape, output_tokens.size)
        self._base: dict[int, int] = {}

    def judge(self, tested: list[Tested], score: Score) -> list[Outcome]:
        """Read the verdicts off the tape; the target's token is its most likely one."""
        batch = self._batch([one.text for one in tested])
        accepted = self._judge.accepted(batch, score, block_length(score))
        return [
            (n, one.choices[n] if n < len(one.choices) else None)
            for n, one in zip(accepted.tolist(), tested, strict=True)
        ]

    def chances(self, texts: list[Text], n: int, after: Counts) -> Chances | None:
        """Read the confidences off the tape, too."""
        batch = self._batch(texts, after)
        bits, rates = self._judge.bits(batch, n), self._judge.rates(n)
        assert self._signals is not None  # of a replay the judge has refused
        return self._signals.chances(batch.cursor[:, None] + np.arange(n), bits, rates)

    def _batch(self, texts: list[Text], after: int | Counts = 0) -> _Judged:
        ids = np.array([text.request for text in texts], dtype=np.intp)
        places = [self._base[text.request] + text.n_emitted for text in texts]
        return _Judged(ids, np.array(places, dtype=np.int64) + after, ids.size)

    def begin(self, text: Text) -> None:
        """Find the request's row on the tape."""
        if self._tape is not None:
            self._base[text.request] = self._tape.take_slot(text.request)
        else:
            self._base[text.request] = 0

    def next_token(self, text: Text, choice: int, law: NDArray[np.float32] | None) -> int:
        """Return the target's choice."""
        return choice

    def finished(self, text: Text) -> None:
        """Give the row of the tape back."""
        base = self._base.pop(text.request)
        if self._tape is not None:
            self._tape.release(base)
