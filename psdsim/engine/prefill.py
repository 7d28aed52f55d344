"""A prefill step: prompts are computed on both models while decoding stands still."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy
from simpy.events import Event

from psdsim.commands import Prefill, Verdict
from psdsim.engine.costs import PassCosts
from psdsim.engine.devices import Device, Pass
from psdsim.engine.roster import Roster
from psdsim.engine.stepbook import StepBook
from psdsim.engine.verdicts import Verdicts


class PrefillStep:
    """Runs prompts on the target and, where there is one, on the draft model.

    On devices of their own both run at the same time, on one device one after the other; the
    first tokens come out when both are done.

    Parameters
    ----------
    env, roster, book, verdicts, costs
        Clock, requests, records, emission, durations.
    target, draft
        Devices; None if nothing drafts.
    """

    def __init__(
        self,
        env: simpy.Environment,
        roster: Roster,
        book: StepBook,
        verdicts: Verdicts,
        costs: PassCosts,
        target: Device,
        draft: Device | None,
    ) -> None:
        self._env = env
        self._roster = roster
        self._book = book
        self._verdicts = verdicts
        self._costs = costs
        self._target = target
        self._draft = draft

    def run(
        self, command: Prefill, not_before: float, order: int
    ) -> Generator[Event, Any, Verdict]:
        """Compute whole prompts (or, after a preemption, all that a request had)."""
        ids, state, book = command.ids, self._roster.state, self._book
        book.is_prefill = True
        n = int(ids.size)
        tokens = int((state.prompt_tokens[ids] + state.emitted[ids]).sum())
        work = Pass(None, ids, order - 1)
        target_s = self._costs.target_prefill(n, tokens)
        self._target.submit(work, target_s, not_before)
        works = [work]
        if self._draft is not None:
            own = Pass(None, ids, order)
            draft_s = self._costs.draft_prefill(n, tokens)
            self._draft.submit(own, draft_s, not_before)
            works.append(own)
            book.draft_time_s += draft_s
        for each in works:
            if not each.done:
                assert each.event is not None
                yield each.event
            book.pass_span(each, "prefill", command.group, tokens)
        book.n_prefill_tokens += tokens
        book.verify_time_s += target_s
        return self._verdicts.first_tokens(ids, self._env.now)
