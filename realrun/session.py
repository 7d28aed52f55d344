"""One run from its options: models loaded, schedule built, records with everything stamped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psdsim.acceptance import AcceptanceModel
from psdsim.errors import InputError
from psdsim.records import Rounds
from psdsim.records.files import commit
from psdsim.records.jsonl import to_lines
from psdsim.schedules import Schedule
from realrun.build import RunnerSpec, drafter_source
from realrun.executor import Executor, ForcedRule, GreedyRule, Job, Rule, RunResult, SamplingRule
from realrun.methods import make_schedule, proposals
from realrun.models.load import config_of, tokenizer_of
from realrun.pair import Pair
from realrun.stamp import hardware, versions
from realrun.workers import DeviceName


@dataclass(frozen=True)
class RunOptions:
    """How to run.

    Parameters
    ----------
    schedule, k
        What runs: a schedule or a method with its knobs (`realrun.methods.runnable`).
    batch
        Requests verified per step; a schedule of two groups holds twice as many in flight.
    target, draft
        Model specs (`RunnerSpec.model`).
    target_device, draft_device
        Where.
    dtype
        Of both models.
    temperature
        0: greedy.
    seed
        Of sampling, forced acceptance and prompts.
    forced
        Acceptance model instead of the real test; None: the real test.
    """

    schedule: str
    k: int
    batch: int
    target: str
    draft: str
    target_device: DeviceName
    draft_device: DeviceName
    dtype: str = "float32"
    temperature: float = 0.0
    seed: int = 0
    forced: AcceptanceModel | None = None

    def make_schedule(self) -> Schedule:
        """Return the schedule with room for all its groups."""
        return make_schedule(self.schedule, self.k, self.batch)

    def max_length(self, job: Job) -> int:
        """Return the longest text that a model sees, with its drafts.

        PEARL drafts a block behind a block.
        """
        made = self.make_schedule()
        return job.max_length + (1 if made.bonus else 2) * made.k

    def specs(self, n_slots: int, max_length: int) -> tuple[RunnerSpec, RunnerSpec | None]:
        """Return what the workers build; no drafter where nothing is drafted.

        Raises
        ------
        psdsim.errors.InputError
            If the vocabularies of target and draft model differ, or a text is too long.
        """
        made = self.make_schedule()
        target = RunnerSpec(
            self.target, self.target_device, n_slots, max_length, self.dtype, self.temperature,
            self.seed,
        )  # fmt: skip
        check_length(self.target, max_length)
        if not made.drafts or made.k == 0:
            return target, None
        if self.draft != "ngram":
            source, n_layers = drafter_source(self.draft, self.target)
            if n_layers is None:
                check_length(source, max_length)
                check_vocabularies(self.target, source)
                both = min(config_of(name).vocab_size for name in (self.target, source))
                target = replace(target, vocab_size=both)
        draft = RunnerSpec(
            self.draft, self.draft_device, n_slots, max_length, self.dtype, self.temperature,
            self.seed, self.target, target.vocab_size,
        )  # fmt: skip
        return target, draft


def check_length(model: str, max_length: int) -> None:
    """Refuse texts beyond a model's positions."""
    most = config_of(model).max_positions
    if max_length > most:
        raise InputError(
            f"prompt, output and drafts take {max_length} tokens",
            expected=f"at most {most}, the positions of {model}",
        )


def check_vocabularies(target: str, draft: str) -> None:
    """Refuse a draft model whose token ids mean something else."""
    if target.startswith("random:") and draft.startswith("random:"):
        # Nothing is meant by either; only widths must fit (one family pads them differently).
        wide, narrow = config_of(target).vocab_size, config_of(draft).vocab_size
        if min(wide, narrow) >= 0.99 * max(wide, narrow):
            return
    else:
        if tokenizer_of(target).fingerprint == tokenizer_of(draft).fingerprint:
            return
        wide, narrow = (tokenizer_of(name).vocab_size for name in (target, draft))
    raise InputError(
        f"{target} and {draft} have different vocabularies ({wide} and {narrow} tokens)",
        expected="a draft model with the target's vocabulary",
        where="--draft",
    )


def run(options: RunOptions, job: Job, pair: Pair) -> RunResult:
    """Run the schedule once on workers that are ready.

    Parameters
    ----------
    options
        How.
    job
        The work.
    pair
        Workers whose caches have room for it.
    """
    schedule = options.make_schedule()
    executor = Executor(schedule, job, make_rule(options, job, schedule), pair.target, pair.draft)
    return executor.run()


def make_rule(options: RunOptions, job: Job, schedule: Schedule) -> Rule:
    """Return the acceptance rule of a run."""
    if options.forced is not None and schedule.drafts and schedule.k:
        known = proposals(options.schedule, options.k, options.forced)
        return ForcedRule(
            options.forced, job.output_tokens, schedule.capacity, schedule.k, options.seed, known
        )
    if options.temperature > 0:
        return SamplingRule(options.seed, options.max_length(job))
    return GreedyRule()


def metadata(options: RunOptions, result: RunResult) -> dict[str, Any]:
    """Return what was run, on what."""
    from psdsim import __version__

    schedule = result.schedule
    forced = options.forced
    data: dict[str, Any] = {
        "tool": "realrun",
        "version": __version__,
        "commit": commit(),
        "schedule": options.schedule,
        "k": options.k if schedule.drafts else 0,
        "max_num_seqs": options.batch,
        "capacity": schedule.capacity,
        "seed": options.seed,
        "temperature": options.temperature,
        "n_requests": int(result.requests["request_id"].size),
        "prompts": result.prompts,
        "acceptance": "measured" if forced is None else forced.model_dump(mode="json"),
        "bonus": result.bonus,
        "target": {
            "name": options.target,
            "config": config_of(options.target).to_hf(),
            "dtype": options.dtype,
            "device": str(options.target_device),
        },
        "draft": {
            "name": options.draft,
            "dtype": options.dtype,
            "device": str(options.draft_device),
        },
        "hardware": hardware(),
        "versions": versions(),
        "partial": result.failure is not None,
    }
    if result.failure is not None:
        data["failure"] = result.failure
    if result.wait_any:
        data["wait_any"] = result.wait_any
    return data


def lines(options: RunOptions, result: RunResult) -> str:
    """Return the records of a run as JSON lines."""
    rounds = Rounds(
        tuple(np.array(row, dtype=np.int64) for row in result.tested),
        tuple(np.array(row, dtype=np.int64) for row in result.accepted),
    )
    parts = to_lines(metadata(options, result), result.steps, result.requests, rounds, result.spans)
    return "\n".join(parts) + "\n"
