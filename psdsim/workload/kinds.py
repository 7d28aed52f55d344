"""The kinds of workload a scenario can name; building one reads no file and draws nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from psdsim.workload.lengths import Lengths, PositiveFloat

RequestCount = Annotated[int, Field(strict=True, ge=1, le=100_000_000)]

TraceFormat = Literal[
    "auto",
    "azure",
    "mooncake",
    "bailian",
    "burstgpt",
    "vidur",
    "timed_jsonl",
    "llmservingsim",
]
TimeUnit = Literal["s", "ms", "us", "ns"]


class _Synthetic(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    n_requests: RequestCount = Field(description="How many requests are sent.")
    prompt_tokens: Lengths = Field(
        description="Prompt length, tokens: a number, or {kind: lognormal|empirical, ...}."
    )
    output_tokens: Lengths = Field(
        description="Output length, tokens: a number, or {kind: lognormal|empirical, ...}."
    )


class BatchWorkload(_Synthetic):
    """All requests arrive at t = 0 (an infinite request rate)."""

    kind: Literal["batch"] = Field("batch", description="All requests at t = 0.")


class ConcurrencyWorkload(_Synthetic):
    """Closed loop: ``concurrency`` requests in flight; a finish sends the next one."""

    kind: Literal["concurrency"] = Field("concurrency", description="Closed loop.")
    concurrency: RequestCount = Field(description="Requests kept in flight by the client.")


class PoissonWorkload(_Synthetic):
    """Open arrivals with exponential gaps.

    ``semantics`` says whose clock is meant, since load generators disagree:

    - ``plain``: a Poisson process; the first arrival comes after the first gap. The one to
      use for queueing checks.
    - ``vllm``: the same gaps, the cumulative times scaled so that the last request arrives
      at exactly ``n_requests / rate``.
    - ``sglang``: the same gaps, the first request at t = 0.
    """

    kind: Literal["poisson"] = Field("poisson", description="Exponential inter-arrival gaps.")
    rate: PositiveFloat = Field(description="Mean arrival rate, requests/s.")
    semantics: Literal["plain", "vllm", "sglang"] = Field(
        "plain", description="Which load generator's convention for the first and last arrival."
    )


class GammaWorkload(_Synthetic):
    """Open arrivals with gamma gaps of mean 1/rate and CV 1/sqrt(burstiness).

    ``plain`` and ``vllm`` as in :class:`PoissonWorkload`; ``burstiness`` 1 is Poisson.
    """

    kind: Literal["gamma"] = Field("gamma", description="Gamma inter-arrival gaps.")
    rate: PositiveFloat = Field(description="Mean arrival rate, requests/s.")
    burstiness: PositiveFloat = Field(
        description="Gamma shape: below 1 burstier than Poisson, above 1 more even."
    )
    semantics: Literal["plain", "vllm"] = Field(
        "plain", description="Which load generator's convention for the last arrival."
    )


class TraceWorkload(BaseModel):
    """Requests of a trace file, read by column name when the requests are generated."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["trace"] = Field("trace", description="Requests of a trace file.")
    path: str = Field(
        min_length=1,
        description="The trace file (.csv or .jsonl, also .gz), relative to the scenario file.",
    )
    format: TraceFormat = Field(
        "auto", description="Layout of the file; auto: told by its column names."
    )
    n_requests: RequestCount | None = Field(
        None, description="Read this many requests from the top of the file; null: all."
    )
    rate_scale: PositiveFloat = Field(
        1.0, description="Multiplies the arrival rate: 2.0 halves every gap."
    )
    time_unit: TimeUnit | None = Field(
        None, description="Unit of the times of a timed_jsonl file that doesn't tell it."
    )
    drop_failures: Annotated[bool, Field(strict=True)] = Field(
        True,
        description="burstgpt: leave out failed rows (0 tokens) and count them; "
        "false: they are an error.",
    )

    @model_validator(mode="after")
    def _no_option_without_effect(self) -> TraceWorkload:
        if self.time_unit is not None and self.format not in ("auto", "timed_jsonl"):
            raise ValueError(
                f"time_unit has no effect: the format {self.format} fixes its own unit; "
                "it belongs to format timed_jsonl"
            )
        if not self.drop_failures and self.format not in ("auto", "burstgpt"):
            raise ValueError(
                f"drop_failures has no effect: format {self.format} has no failed rows; "
                "it belongs to format burstgpt"
            )
        return self


Workload = Annotated[
    BatchWorkload | ConcurrencyWorkload | PoissonWorkload | GammaWorkload | TraceWorkload,
    Field(discriminator="kind"),
]
"""Any workload, told apart by ``kind``."""
