"""The sections of a scenario file, each a frozen object with checked fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from psdsim.hardware.fields import Efficiency, NonNegative, Number, Positive, PositiveCount
from psdsim.latency import StepTimeModel

Switch = Annotated[bool, Field(strict=True)]


class Section(BaseModel):
    """A part of a scenario: frozen, and a stranger among its keys is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelOnGpus(Section):
    """A model and the GPUs it runs on."""

    config: str = Field(min_length=1, description="Built-in model name or path of a config.json.")
    gpu: str = Field(min_length=1, description="GPU name, as listed by `psdsim schedules --gpus`.")
    n_gpus: PositiveCount = Field(description="GPUs the model is spread over (tensor parallel).")


class DraftOnGpus(ModelOnGpus):
    """The draft model and where it runs under schedules that overlap both models."""

    shared: Switch = Field(
        False,
        description="True: it always runs on the target's GPUs, at the same time under "
        "overlapping schedules. False: these get GPUs of its own; serial schedules (sd) still "
        "run it on the target's, one after the other.",
    )
    slow_down: Number = Field(
        1.0,
        ge=1.0,
        le=100.0,
        description="With shared: factor by which passes of both models slow each other while "
        "both run.",
    )


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
    sync_s: NonNegative = Field(
        0.0, description="Barrier that hands drafts from one device to the other, s."
    )
    comm_per_token_s: NonNegative = Field(
        0.0, description="Added to the barrier for each drafted token handed over, s."
    )
    jitter_cv: NonNegative = Field(
        0.0,
        le=10.0,
        description="Standard deviation / mean of the time of a target pass and of a drafting "
        "phase, lognormal.",
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
