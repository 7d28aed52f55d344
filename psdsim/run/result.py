"""What `simulate` returns: one run, with its figures, tables and timeline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from psdsim.engine import RawRun
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.records import Span, StepKind
from psdsim.records.jsonl import to_lines
from psdsim.run.basis import Basis
from psdsim.run.metrics import run_metrics
from psdsim.run.perfetto import to_chrome_trace
from psdsim.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """One simulated run.

    Parameters
    ----------
    scenario, schedule, k, basis, seed, replication
        What was run: enough to run it again.
    capacity
        Most requests in flight in one replica.
    n_gpus
        GPUs in use.
    raw
        What the engine recorded.
    notes
        What was assumed, extended, extrapolated or left out.
    """

    scenario: Scenario
    schedule: str
    k: int
    basis: Basis
    seed: int
    replication: int
    capacity: int
    n_gpus: int
    raw: RawRun
    notes: tuple[str, ...]

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """All figures of the run by name (`psdsim.run.metrics.DEFINITIONS`)."""
        return run_metrics(
            self.raw,
            capacity=self.capacity,
            open_loop=self.scenario.workload.kind in {"poisson", "gamma", "trace"},
            n_replicas=self.scenario.engine.n_replicas,
            n_groups=method(self.schedule).schedule.n_groups,
        )

    def summary(self) -> pd.Series[Any]:
        """Return the figures as a pandas Series, titled with schedule and k."""
        return pd.Series(
            {"schedule": self.schedule, "k": self.k, "n_gpus": self.n_gpus} | self.metrics,
            name=f"{self.scenario.name}: {self.schedule} k={self.k}",
        )

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a request."""
        return pd.DataFrame(self.raw.requests)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row an engine step; `kind` in words."""
        frame = pd.DataFrame(self.raw.steps)
        names = {int(kind): kind.name.lower() for kind in StepKind}
        return frame.assign(kind=frame["kind"].map(names))

    @property
    def spans(self) -> list[Span]:
        """Timeline spans; simulate with ``timeline=True`` to have them."""
        if not self.raw.spans:
            raise InputError("this run kept no timeline", expected="simulate(..., timeline=True)")
        return self.raw.spans

    def timeline(self, *, start_s: float | None = None, n_steps: int = 8) -> Figure:
        """Draw the timeline.

        Parameters
        ----------
        start_s
            Where to begin, s; default: the first drafting or decoding step.
        n_steps
            Steps to show from there.
        """
        from psdsim.run.gantt import gantt

        steps = self.steps[self.steps["replica"] == 0]
        if start_s is None:
            decoding = steps[steps["kind"] != "prefill"]
            start_s = float(decoding["start_s"].iloc[0]) if len(decoding) else 0.0
        shown = steps[steps["start_s"] >= start_s].head(n_steps)
        if shown.empty:
            raise InputError(
                f"start is {start_s} s and the run ends at {self.raw.makespan_s:.6g} s",
                expected="a time inside the run",
            )
        title = f"{self.scenario.name}: {self.schedule}" + (f", k={self.k}" if self.k else "")
        return gantt(
            self.spans,
            title=title,
            start_s=start_s,
            end_s=float(shown["end_s"].iloc[-1]),
            n_groups=method(self.schedule).schedule.n_groups,
        )

    def to_jsonl(self, path: str | Path) -> None:
        """Write steps, requests and what else was kept as JSON lines (MineDraft's trace and more).

        Rounds and timeline spans are there if they were recorded.
        """
        metadata = {
            "scenario": self.scenario.to_dict(),
            "schedule": self.schedule,
            "k": self.k,
            "capacity": self.capacity,
            "bonus": method(self.schedule).schedule.bonus,
            "basis": str(self.basis),
            "seed": self.seed,
            "replication": self.replication,
        }
        with Path(path).open("w", encoding="utf-8") as file:
            raw = self.raw
            for line in to_lines(metadata, raw.steps, raw.requests, raw.rounds, raw.spans):
                file.write(line + "\n")

    def to_perfetto(self, path: str | Path | None = None, *, until_s: float | None = None) -> str:
        """Return the timeline as Chrome trace JSON, and write it to `path` if one is given."""
        trace = to_chrome_trace(self.spans, name=f"{self.schedule} k={self.k}", until_s=until_s)
        text = json.dumps(trace)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text
