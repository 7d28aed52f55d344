"""From a scenario and a schedule to the engine's setup."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from psdsim.acceptance import AcceptanceModel, IidAcceptance
from psdsim.engine import Costs, EngineSetup
from psdsim.engine.setup import JitterLaw, Placement
from psdsim.errors import InputError
from psdsim.latency import StepTimer, kv_blocks
from psdsim.methods import method
from psdsim.run.basis import Basis, capacity, drafts_beside
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule
from psdsim.workload import Requests, generate


def prepare(
    scenario: Scenario,
    schedule: str,
    k: int,
    *,
    seed: int = 0,
    replication: int = 0,
    basis: Basis = Basis.STEP_BATCH,
    record_steps: bool = True,
    record_spans: bool = False,
    record_rounds: bool = False,
    steps_parquet: Path | None = None,
    progress: Callable[[int], None] | None = None,
    requests: Requests | None = None,
) -> EngineSetup:
    """Resolve one run: requests drawn, step times bound, memory counted.

    Parameters
    ----------
    scenario
        Deployment and traffic.
    schedule
        Name of the schedule or method, with its knobs (`psdsim.methods.method`).
    k
        Drafted tokens per round (ignored by ``ar``).
    seed, replication
        Keys of all randomness.
    basis
        What is held equal; decides how many requests are in flight.
    record_steps, record_spans, record_rounds, steps_parquet, progress
        See `EngineSetup`.
    requests
        The work, if it is not to be generated from the scenario.

    Raises
    ------
    psdsim.errors.InputError
        If the schedule and the scenario don't fit together.
    """
    chosen = method(schedule)
    cls = chosen.schedule
    if cls.drafts and scenario.draft is None and not chosen.own_drafter:
        raise InputError(
            f"schedule '{schedule}' drafts and the scenario has no draft model",
            expected="draft, acceptance and step_time.draft",
            where=scenario.file,
        )
    n_slots = capacity(cls, scenario, basis)
    scenario = chosen.adapt(scenario, k)
    make = chosen.make(scenario, k, n_slots, scenario.engine.chunked_prefill)
    made = make()
    _check_budget(scenario, made)
    # Plain decoding asks no acceptance model; any will do.
    acceptance: AcceptanceModel = scenario.acceptance or IidAcceptance(alpha=0.0)
    if requests is None:
        requests = generate(scenario.workload, seed, replication, scenario.base_dir)
    _check_prompts(scenario, requests)
    drafting = made.drafts and made.k > 0
    return EngineSetup(
        make_schedule=make,
        acceptance=acceptance,
        costs=costs(scenario, drafting),
        requests=requests,
        placement=_placement(scenario, cls, drafting),
        proposals=chosen.proposals(scenario, k),
        n_targets=made.n_targets,
        slow_down=scenario.draft.slow_downs if scenario.draft is not None else (1.0, 1.0),
        max_num_batched_tokens=scenario.engine.max_num_batched_tokens,
        kv_blocks=pool_blocks(scenario, cls, drafting and not chosen.own_drafter),
        block_size=scenario.engine.block_size,
        n_replicas=scenario.engine.n_replicas,
        routing=scenario.engine.routing,
        seed=seed,
        replication=replication,
        record_steps=record_steps,
        record_spans=record_spans,
        record_rounds=record_rounds,
        steps_parquet=steps_parquet,
        progress=progress,
    )


def _check_budget(scenario: Scenario, schedule: Schedule) -> None:
    rows = schedule.capacity // schedule.n_groups * schedule.rows
    budget = scenario.engine.max_num_batched_tokens
    if rows > budget:
        raise InputError(
            f"verifying {schedule.capacity // schedule.n_groups} requests with k={schedule.k} "
            f"feeds {rows} tokens and the budget is {budget}",
            expected="a larger max_num_batched_tokens, or a smaller max_num_seqs or k",
            where="engine.max_num_batched_tokens",
        )


def _check_prompts(scenario: Scenario, requests: Requests) -> None:
    """Refuse prompts that no pass can take before anything is simulated."""
    budget = scenario.engine.max_num_batched_tokens
    longest = int(requests.prompt_tokens.argmax())
    tokens = int(requests.prompt_tokens[longest])
    if tokens > budget and not scenario.engine.chunked_prefill:
        raise InputError(
            f"request {longest} has {tokens} prompt tokens and one pass takes {budget}",
            expected="chunked_prefill: true or a larger budget",
            where="engine.max_num_batched_tokens",
        )


def _placement(scenario: Scenario, cls: type[Schedule], drafting: bool) -> Placement:
    draft = scenario.draft
    if not cls.overlaps and not (drafting and drafts_beside(cls, scenario)):
        return "colocated"
    assert draft is not None
    return "shared" if draft.shared or draft.slow_downs != (1.0, 1.0) else "separate"


def costs(scenario: Scenario, drafting: bool) -> Costs:
    """Return bound step times and fixed costs of a scenario."""
    times = scenario.step_time
    timers = scenario.timers()
    target = timers["target"]
    assert target is not None
    draft = timers["draft"] if drafting else None
    target_cv, target_law = _jitter(target, times.jitter_cv)
    draft_cv, draft_law = 0.0, target_law
    if draft is not None and times.draft_jitter_cv is not None:
        draft_cv, draft_law = _jitter(draft, times.draft_jitter_cv, "draft_jitter_cv")
    elif draft is not None:
        draft_cv, draft_law = _jitter(draft, times.jitter_cv)
    return Costs(
        target=target,
        draft=draft,
        step_overhead_s=times.step_overhead_s,
        step_overhead_per_seq_s=times.step_overhead_per_seq_s,
        draft_start_s=times.draft_start_s,
        target_resume_s=times.target_resume_s if drafting else 0.0,
        sync_s=times.sync_s,
        comm_per_token_s=times.comm_per_token_s,
        target_jitter_cv=target_cv,
        draft_jitter_cv=draft_cv,
        target_jitter_law=target_law,
        draft_jitter_law=draft_law,
        prefill=timers["prefill"],
        draft_prefill=timers["draft_prefill"] if drafting else None,
    )


def _jitter(timer: StepTimer, cv: float, key: str = "jitter_cv") -> tuple[float, JitterLaw]:
    if timer.jitter != "exponential":
        return cv, "lognormal"
    if cv:
        raise InputError(
            f"{key} is {cv} and a step time is exponential already",
            expected=f"{key}: 0",
            where=f"step_time.{key}",
        )
    return 1.0, "exponential"


def pool_blocks(scenario: Scenario, cls: type[Schedule], drafting: bool) -> int | None:
    """Return the KV blocks of one replica; None is unlimited."""
    engine = scenario.engine
    if engine.kv_blocks == "unlimited":
        return None
    if engine.kv_blocks is not None:
        return engine.kv_blocks
    target, draft = scenario.target_placement, scenario.draft_placement
    assert target.shape is not None
    assert target.gpu is not None
    shared = scenario.draft is not None and scenario.draft.shared
    together = shared or not drafts_beside(cls, scenario)
    try:
        blocks = kv_blocks(
            target.shape, target.gpu, target.n_gpus,
            block_size=engine.block_size,
            gpu_memory_utilization=engine.gpu_memory_utilization,
            kv_dtype_bytes=engine.kv_dtype_bytes,
            other=[draft.shape] if drafting and together and draft and draft.shape else [],
        )  # fmt: skip
        if drafting and not together and draft is not None and draft.shape and draft.gpu:
            own = kv_blocks(
                draft.shape, draft.gpu, draft.n_gpus,
                block_size=engine.block_size,
                gpu_memory_utilization=engine.gpu_memory_utilization,
                kv_dtype_bytes=engine.kv_dtype_bytes,
                other=[],
            )  # fmt: skip
            blocks = min(blocks, own)
    except InputError as error:
        raise error.at(scenario.file) from None
    return blocks
