"""The sections of a scenario file, each a frozen object with checked fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from psdsim.hardware.fields import (
    Efficiency,
    NonNegative,
    Positive,
    PositiveCount,
    SlowDownFactor,
    Variation,
)
from psdsim.latency import StepTimeModel

Switch = Annotated[bool, Field(strict=True)]


class Section(BaseModel):
    """A part of a scenario: frozen, and a stranger among its keys is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


MEASURED = "measured"
"""Stands for a GPU's name where there is no data sheet."""


class ModelOnGpus(Section):
    """A model and the GPUs it runs on."""

    config: str = Field(min_length=1, description="Built-in model name or path of a config.json.")
    gpu: str = Field(
        min_length=1,
        description="GPU name, as listed by `psdsim schedules --gpus`; or measured: no data "
        "sheet (CPU cores, a GPU that is not listed), every step time is stated.",
    )
    n_gpus: PositiveCount = Field(description="GPUs the model is spread over (tensor parallel).")


class SlowDown(Section):
    """By what factor each model's passes take longer while the other model runs, too."""

    target: SlowDownFactor = Field(description="Of the target's passes.")
    draft: SlowDownFactor = Field(description="Of the draft's passes.")


def _one_or_two(value: object) -> str:
    return "two" if isinstance(value, Mapping | SlowDown) else "one"


class DraftOnGpus(ModelOnGpus):
    """The draft model and where it runs."""

    shared: Switch = Field(
        False,
        description="True: it always runs on the target's GPUs, at the same time under "
        "overlapping schedules. False: these get GPUs of its own; where serial schedules (sd) "
        "run it, serial_on says.",
    )
    serial_on: Literal["target", "own"] = Field(
        "target",
        description="Where serial schedules (sd) draft: on the target's GPUs, or on the GPUs that "
        "the draft has under overlapping schedules (own), which pays the handover (sync_s).",
    )
    # Told apart first, so that a mistake in the mapping is named, not that it is no number.
    slow_down: Annotated[
        Annotated[SlowDownFactor, Tag("one")] | Annotated[SlowDown, Tag("two")],
        Discriminator(_one_or_two),
    ] = Field(
        1.0,
        description="Factor by which passes of both models slow each other while both run, on "
        "shared GPUs or because devices of their own share memory bandwidth; or one for each.",
    )

    @property
    def slow_downs(self) -> tuple[float, float]:
        """Factors by which target passes and draft passes slow down while both run."""
        slow = self.slow_down
        return (slow.target, slow.draft) if isinstance(slow, SlowDown) else (slow, slow)


class StepTimes(Section):
    """Where time goes: one forward of each model, and what surrounds it."""

    target: StepTimeModel = Field(description="One target pass.")
    draft: StepTimeModel | None = Field(None, description="One draft forward.")
    prefill: StepTimeModel | None = Field(
        None, description="Target pass over whole prompts, where it differs from `target`."
    )
    draft_prefill: StepTimeModel | None = Field(
        None, description="Draft pass over whole prompts, where it differs from `draft`."
    )
    step_overhead_s: NonNegative = Field(
        0.0, description="CPU time before the first pass of every engine step, s."
    )
    step_overhead_per_seq_s: NonNegative = Field(
        0.0,
        description="Added to it for each request that the step verifies (drafts for, where it "
        "verifies none; prefills, where it decodes none), s.",
    )
    sync_s: NonNegative = Field(
        0.0, description="Barrier that hands drafts from one device to the other, s."
    )
    comm_per_token_s: NonNegative = Field(
        0.0, description="Added to the barrier for each drafted token handed over, s."
    )
    draft_start_s: NonNegative = Field(
        0.0,
        description="Added to every drafting phase, however long: starting it on its device and "
        "bringing its drafts back, s.",
    )
    target_resume_s: NonNegative = Field(
        0.0,
        description="Added to a target pass that waited for drafts of its own step, made on a "
        "device of their own (serial_on: own): its caches are cold after the pause, s.",
    )
    jitter_cv: Variation = Field(
        0.0,
        description="Standard deviation / mean of the time of a target pass and of a drafting "
        "phase, lognormal.",
    )
    draft_jitter_cv: Variation | None = Field(
        None, description="That of a drafting phase, where it differs; null: as jitter_cv."
    )


class Engine(Section):
    """Continuous batching: limits, memory, copies."""

    max_num_seqs: Annotated[int, Field(strict=True, ge=1, le=65536)] = Field(
        description="Requests verified per step (m); see the comparison basis."
    )
    max_num_batched_tokens: Annotated[int, Field(strict=True, ge=1)] = Field(
        8192, description="Most tokens in one target pass."
    )
    kv_blocks: Annotated[int, Field(strict=True, ge=1)] | Literal["unlimited"] | None = Field(
        None,
        description="KV-cache blocks of one replica; null: what fits into the GPUs' memory; "
        '"unlimited": memory never binds.',
    )
    block_size: Annotated[int, Field(strict=True, ge=1, le=4096)] = Field(
        16, description="Tokens per KV block."
    )
    gpu_memory_utilization: Efficiency = Field(
        0.9, description="Share of GPU memory for weights and KV cache (vLLM's default 0.9)."
    )
    kv_dtype_bytes: Positive = Field(2.0, description="Bytes per KV element: 2 bf16, 1 fp8.")
    chunked_prefill: Switch = Field(
        False, description="Prompts ride along in decode passes (ar and sd only)."
    )
    n_replicas: Annotated[int, Field(strict=True, ge=1, le=1024)] = Field(
        1, description="Copies of the whole deployment."
    )
    routing: Literal["round_robin", "least_loaded"] = Field(
        "round_robin", description="How requests are spread over replicas."
    )
