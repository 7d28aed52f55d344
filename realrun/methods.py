"""Methods on real models: the schedule is the method's, the models are the user's."""

from __future__ import annotations

from psdsim.acceptance import AcceptanceModel
from psdsim.errors import InputError
from psdsim.methods import Method, Parts, Stacked, method
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule
from psdsim.verdict import PLAIN, Proposals


def runnable(spec: str) -> Method:
    """Return the method of a specification, if its schedule is all that is its own.

    Parameters
    ----------
    spec
        As on the command line: ``sd``, ``tetris:extra=2`` (`psdsim.methods.method`).

    Raises
    ------
    psdsim.errors.InputError
        If there is none, or it needs a drafter or a verifier that realrun lacks; it says which.
    """
    try:
        chosen = method(spec)
    except InputError as error:
        raise InputError(error.what, expected=error.expected, where="--schedule") from None
    lacking, expected = None, None
    if isinstance(chosen, Stacked):
        lacking = "changes the models, which realrun takes as they are"
        expected = "the method below the +, and other models under --target and --draft"
    elif not chosen.lossless:
        lacking = f"has a lossy verifier ({chosen.parts.verifier}), which realrun lacks"
    elif chosen.schedule.drafts and chosen.parts.drafter != Parts.drafter:
        lacking = f"has a drafter ({chosen.parts.drafter}) that realrun lacks"
        expected = "a schedule for any drafter, and the drafter under --draft"
    if lacking is not None:
        raise InputError(f"method '{spec}' {lacking}", expected=expected, where="--schedule")
    return chosen


def make_schedule(spec: str, k: int, batch: int) -> Schedule:
    """Return a method's schedule with room for all its groups.

    Parameters
    ----------
    spec
        As for `runnable`.
    k
        Draft length; of a method with a length policy what it starts from (`psdsim methods`).
    batch
        Requests verified per step.
    """
    chosen = runnable(spec)
    return chosen.make(_nominal(None), k, batch * chosen.schedule.n_groups)()


def proposals(spec: str, k: int, forced: AcceptanceModel) -> Proposals:
    """Return what forced acceptance pretends of the drafter: its confidences' quality.

    Parameters
    ----------
    spec, k
        As for `make_schedule`.
    forced
        The acceptance model.
    """
    chosen = runnable(spec)
    return chosen.proposals(_nominal(forced), k) if chosen.schedule.asks_confidence else PLAIN


def check_knobs(spec: str) -> None:
    """Refuse knobs of a simulated drafter where a real one drafts.

    Raises
    ------
    psdsim.errors.InputError
        If one was given that nothing would read.
    """
    chosen = runnable(spec)
    idle = [knob.name for knob in chosen.knobs if knob.simulated and knob.name in chosen.stated]
    if idle:
        raise InputError(
            f"{idle[0]} says what a simulated drafter is like, and this one is real",
            expected="the knob with --accept, or not at all",
            where="--schedule",
        )


def _nominal(forced: AcceptanceModel | None) -> Scenario:
    """Return a scenario for methods to read; times are measured, so it has none beside passes."""
    changes: dict[str, object] = {
        "step_time.step_overhead_s": 0.0,
        "step_time.step_overhead_per_seq_s": 0.0,
    }
    if forced is not None:
        changes["acceptance"] = forced.model_dump()
    return Scenario.builtin(changes)


__all__ = ["check_knobs", "make_schedule", "proposals", "runnable"]
