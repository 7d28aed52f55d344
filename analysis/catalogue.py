"""The formulas by name: equation, assumptions, source, and how to evaluate one on a deployment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis import sd
from analysis._checks import FloatArray
from analysis._kinds import Approximation, Bound
from psdsim.acceptance import AcceptanceModel
from psdsim.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Inputs:
    """What a deployment gives to the formulas.

    Parameters
    ----------
    acceptance
        The acceptance model; None without drafting.
    k
        Drafted tokens per round.
    n_seqs
        Requests verified per step.
    draft_forward_s, draft_phase_s
        One draft forward, and k of them, at the full batch, s.
    decode_s, verify_s
        A target pass of plain decoding, and one over k+1 rows a request, s.
    half_draft_s, half_verify_s
        Phases of half the batch, s.
    overhead_s, sync_s
        Fixed costs of a step and of a barrier, s.
    overhead_per_seq_s
        Added to the step's for each request in it, s.
    serial_beside
        Whether serial schedules, too, draft on a device of the draft's own, over the barrier.
    slowed
        Whether passes that overlap slow each other.
    resume_s
        Added to a serial target pass that waited for drafts from a device of the draft's own, s.
    target_prefill_s, draft_prefill_s
        Passes over one mean prompt, s.
    draft_cv, verify_cv
        Jitter of the phases.
    n_target_gpus, n_draft_gpus
        GPUs.
    n_tokens
        Mean tokens decoded per request.
    n_replicas
        Copies of the deployment.
    arrival_rate
        Requests/s; None unless arrivals are open.
    """

    acceptance: AcceptanceModel | None
    k: int
    n_seqs: float
    draft_forward_s: float
    draft_phase_s: float
    decode_s: float
    verify_s: float
    half_draft_s: float
    half_verify_s: float
    overhead_s: float
    sync_s: float
    target_prefill_s: float
    draft_prefill_s: float
    draft_cv: float
    verify_cv: float
    n_target_gpus: int
    n_draft_gpus: int
    n_tokens: int
    n_replicas: int = 1
    arrival_rate: float | None = None
    overhead_per_seq_s: float = 0.0
    serial_beside: bool = False
    slowed: bool = False
    resume_s: float = 0.0

    def step_overhead_s(self, n_seqs: float) -> float:
        """Return the fixed costs of a step with n requests, s."""
        return self.overhead_s + self.overhead_per_seq_s * n_seqs

    @property
    def serial_sync_s(self) -> float:
        """Barrier in a step of serial SD, and what the target loses by waiting, s."""
        return self.sync_s + self.resume_s if self.serial_beside else 0.0

    @property
    def serial_step_s(self) -> float:
        """Mean step of serial SD at the full batch, s."""
        fixed = self.step_overhead_s(self.n_seqs) + self.serial_sync_s
        return float(sd.step_time(self.draft_phase_s, self.verify_s, fixed))

    @property
    def overlapping(self) -> tuple[float, float]:
        """Drafting phase and target pass that run at the same time, or `NotApplicable`."""
        if self.slowed:
            raise NotApplicable("passes that overlap slow each other (draft.slow_down)")
        return self.draft_phase_s, self.verify_s

    def serial_drafts_on_target(self) -> None:
        """Raise `NotApplicable` where serial SD drafts on GPUs of the draft's own."""
        if self.serial_beside:
            raise NotApplicable("serial SD uses the draft's GPUs, too (draft.serial_on: own)")

    @property
    def model(self) -> AcceptanceModel:
        """The acceptance model, or `NotApplicable`."""
        if self.acceptance is None or self.k == 0:
            raise NotApplicable("nothing is drafted")
        return self.acceptance

    @property
    def alpha(self) -> float:
        """The i.i.d. rate, or `NotApplicable` where acceptance isn't i.i.d."""
        alpha = getattr(self.model, "alpha", None)
        if alpha is None:
            raise NotApplicable(f"needs i.i.d. acceptance, not {getattr(self.model, 'kind', '?')}")
        return float(alpha)

    @property
    def tokens_pmf(self) -> FloatArray:
        """P(a round emits j tokens), j = 0..k+1."""
        return np.concatenate([[0.0], self.model.pmf(self.k)])

    @property
    def draft_cost_ratio(self) -> float:
        """One draft forward / one plain target pass (Leviathan's c)."""
        return self.draft_forward_s / self.decode_s


class NotApplicable(InputError):  # noqa: N818 (an answer of the catalogue, not a mistake)
    """An assumption of the formula doesn't hold on this deployment."""


@dataclass(frozen=True)
class Formula:
    """One entry of the catalogue.

    Parameters
    ----------
    name
        For ``--explain``.
    symbol
        Short, for tables.
    meaning
        What the value is, with its unit.
    equation
        Plain text.
    assumptions
        What it takes for granted.
    source
        Paper or note with equation number.
    evaluate
        Its value on a deployment; raises an `InputError` where an assumption breaks.
    """

    name: str
    symbol: str
    meaning: str
    equation: str
    assumptions: tuple[str, ...]
    source: str
    evaluate: Callable[[Inputs], float | Approximation | Bound]


def all_formulas() -> dict[str, Formula]:
    """Return every formula of the catalogue by name, in the order of the sections."""
    from analysis.catalogue_entries import FORMULAS
    from analysis.catalogue_load import LOAD
    from analysis.catalogue_more import MORE

    return {formula.name: formula for formula in (*FORMULAS, *MORE, *LOAD)}


def formula(name: str) -> Formula:
    """Return one formula.

    Raises
    ------
    psdsim.errors.InputError
        If the name is unknown; the nearest one is named.

    Examples
    --------
    >>> formula("speedup").symbol
    'S'
    """
    known = all_formulas()
    if name not in known:
        raise InputError(
            f"there is no formula '{name}'{did_you_mean(name, known)}",
            expected="one of " + ", ".join(known),
            where="--explain",
        )
    return known[name]
