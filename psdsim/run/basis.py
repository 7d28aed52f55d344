"""What is held equal when schedules are compared: batch per step, requests in flight, or GPUs."""

from __future__ import annotations

from enum import StrEnum

from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule


class Basis(StrEnum):
    """Comparison basis."""

    STEP_BATCH = "step-batch"
    """m requests verified per step, as published: MineDraft holds 2m."""
    CONCURRENCY = "concurrency"
    """The same number of requests in flight: MineDraft's sub-batches hold m/2 each."""
    GPUS = "gpus"
    """As step-batch, throughput per GPU: four GPUs are credited with 5/4 against five."""


def capacity(schedule: type[Schedule], scenario: Scenario, basis: Basis) -> int:
    """Return the most requests that a schedule holds in flight.

    Raises
    ------
    psdsim.errors.InputError
        If the requests in flight can't be split over the schedule's groups.
    """
    m = scenario.engine.max_num_seqs
    if basis is Basis.CONCURRENCY:
        if m < schedule.n_groups:
            raise InputError(
                f"max_num_seqs is {m} and {schedule.name} needs {schedule.n_groups} groups",
                expected=f"at least {schedule.n_groups}",
                where="engine.max_num_seqs",
            )
        return m
    return m * schedule.n_groups


def seqs_per_step(schedule: type[Schedule], scenario: Scenario, basis: Basis) -> float:
    """Return the requests that one target pass verifies when the schedule is full."""
    return capacity(schedule, scenario, basis) / schedule.n_groups


def n_gpus(name: str, scenario: Scenario, k: int) -> int:
    """Return the GPUs that a method uses at a draft length, all replicas together."""
    chosen = method(name)
    adapted = chosen.adapt(scenario, k)
    own = adapted.target.n_gpus * chosen.make(adapted, k, chosen.schedule.n_groups)().n_targets
    draft = adapted.draft
    if draft is not None and not draft.shared and drafts_beside(chosen.schedule, adapted):
        own += draft.n_gpus
    return own * scenario.engine.n_replicas


def drafts_beside(schedule: type[Schedule], scenario: Scenario) -> bool:
    """Say whether the draft runs beside the target, not in line with it on one device."""
    if schedule.overlaps:
        return True
    return schedule.drafts and scenario.draft is not None and scenario.draft.serial_on == "own"
