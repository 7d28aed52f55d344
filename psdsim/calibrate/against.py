"""A measured run replayed in the simulator, quantity by quantity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.calibrate.runs import MeasuredRun
from psdsim.engine import simulate_run
from psdsim.errors import InputError
from psdsim.records import StepKind
from psdsim.run.basis import Basis
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario
from psdsim.workload import Requests

Columns = Mapping[str, NDArray[Any]]

REPLICATIONS = 5
"""Simulations whose times are averaged where step times vary."""

QUANTITIES: dict[str, str] = {
    "prefill steps": "",
    "drafting steps": "",
    "decode steps": "",
    "output tokens": "",
    "accepted drafts": "",
    "output throughput": "tokens/s",
    "mean decode step": "ms",
    "mean TTFT": "ms",
    "mean TPOT": "ms",
    "total time": "s",
}
"""What is compared, with its unit; those without one are counts and must be equal."""


@dataclass(frozen=True)
class Against:
    """Measured and simulated, side by side.

    Parameters
    ----------
    rows
        One mapping a quantity: quantity, unit, measured, simulated, error (relative), exact
        (whether equality is asked), spread (quartiles of the measured step times; else None).
    notes
        What a reader must know.
    """

    rows: list[dict[str, Any]]
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether all counts that must be equal are."""
        return all(row["measured"] == row["simulated"] for row in self.rows if row["exact"])


def against(run: MeasuredRun, scenario: Scenario, seed: int = 0) -> Against:
    """Replay a run: its schedule, draft length, requests and accepted drafts.

    Parameters
    ----------
    run
        What was measured.
    scenario
        Step times and overheads; its acceptance and its workload are replaced by the run's.
    seed
        Of the jitter.

    Raises
    ------
    psdsim.errors.InputError
        If the run lacks what a replay needs, or does not fit the scenario.
    """
    kept = np.flatnonzero(run.finished)
    if not kept.size:
        raise InputError("no request of the run is finished", where=run.file)
    table = run.recording.requests
    kept = kept[np.lexsort((table["request_id"][kept], table["arrival_s"][kept]))]
    requests = Requests(
        table["arrival_s"][kept],
        table["prompt_tokens"][kept],
        table["output_tokens"][kept],
        open_loop=bool(table["arrival_s"].any()),
    )
    changed, basis, tape_seed = _as_run(run, scenario, kept)
    notes = []
    exact = not run.recording.partial and not requests.open_loop
    if run.recording.partial:
        notes.append(
            f"PARTIAL: the run was cut short; its {kept.size} finished requests of "
            f"{table['request_id'].size} are replayed, so that nothing need be equal"
        )
    elif requests.open_loop:
        notes.append(
            "requests arrive over time, so that steps depend on times: nothing need be equal"
        )
    found = []
    for replication in range(REPLICATIONS if tape_seed is None else 1):
        setup = prepare(
            changed, run.schedule.name, run.k,
            seed=seed if tape_seed is None else tape_seed, replication=replication, basis=basis,
            requests=requests,
        )  # fmt: skip
        raw = simulate_run(setup)
        notes += [note for note in raw.notes if note not in notes]
        found.append(_quantities(raw.requests, raw.steps))
    theirs = _quantities(
        {name: column[kept] for name, column in table.items()}, run.recording.steps
    )
    rows = []
    for name, unit in QUANTITIES.items():
        measured = theirs[name]
        simulated = float(np.mean([one[name] for one in found]))
        rows.append(
            {
                "quantity": name,
                "unit": unit,
                "measured": measured,
                "simulated": simulated,
                "error": simulated / measured - 1.0 if measured else None,
                "exact": exact and not unit,
                "spread": _spread(run.recording.steps) if name == "mean decode step" else None,
            }
        )
    return Against(rows, tuple(notes))


def _as_run(
    run: MeasuredRun, scenario: Scenario, kept: NDArray[np.intp]
) -> tuple[Scenario, Basis, int | None]:
    """Return the scenario with the run's acceptance and batch, its basis, and a tape's seed."""
    metadata = run.metadata
    m, held = metadata.get("max_num_seqs"), metadata.get("capacity")
    if type(m) is not int or m < 1:
        raise InputError(
            f"max_num_seqs is {str(m)[:40]}", expected="a whole number of at least 1",
            where=f"{run.file}: metadata",
        )  # fmt: skip
    n_groups = run.schedule.n_groups
    basis = Basis.CONCURRENCY if held == m and n_groups > 1 else Basis.STEP_BATCH
    if held is not None and held not in (m, m * n_groups):
        raise InputError(
            f"capacity is {str(held)[:40]} at max_num_seqs {m}", expected=f"{m} or {m * n_groups}",
            where=f"{run.file}: metadata",
        )  # fmt: skip
    changes: dict[str, Any] = {"engine.max_num_seqs": m}
    tape_seed = None
    if run.drafts:
        if scenario.draft is None:
            raise InputError(
                f"the run drafts ({run.schedule.name}) and the scenario has no draft model",
                expected="draft, acceptance and step_time.draft",
                where=scenario.file,
            )
        rounds = run.recording.rounds
        if rounds is not None:
            lists = [rounds.accepted[i].tolist() for i in kept]
            changes["acceptance"] = {
                "kind": "replay", "k": run.k, "bonus": run.schedule.bonus,
                # A request of one token has no rounds, and none of it will be asked for.
                "rounds": [one or [0] for one in lists],
            }  # fmt: skip
        elif run.forced is not None and type(metadata.get("seed")) is int:
            changes["acceptance"], tape_seed = run.forced, metadata["seed"]
        else:
            raise InputError(
                "the run has no rounds (tested and accepted of each request)",
                expected="a run that recorded them",
                where=run.file,
            )
    return scenario.set(changes), basis, tape_seed


def _quantities(requests: Columns, steps: Columns) -> dict[str, float]:
    kind, length = steps["kind"], steps["end_s"] - steps["start_s"]
    output = requests["output_tokens"]
    ttft = requests["first_token_s"] - requests["arrival_s"]
    decoded = output > 1
    rest = (requests["finish_s"] - requests["first_token_s"])[decoded] / (output[decoded] - 1)
    total_s = float(requests["finish_s"].max())
    decode = kind == int(StepKind.DECODE)
    return {
        "prefill steps": int((kind == int(StepKind.PREFILL)).sum()),
        "drafting steps": int((kind == int(StepKind.DRAFT)).sum()),
        "decode steps": int(decode.sum()),
        "output tokens": int(output.sum()),
        "accepted drafts": int(steps["n_accepted_tokens"].sum()),
        "output throughput": float(output.sum()) / total_s,
        "mean decode step": float(length[decode].mean()) * 1e3 if decode.any() else math.nan,
        "mean TTFT": float(ttft.mean()) * 1e3,
        "mean TPOT": float(rest.mean()) * 1e3 if rest.size else math.nan,
        "total time": total_s,
    }


def _spread(steps: Columns) -> list[float] | None:
    decode = steps["kind"] == int(StepKind.DECODE)
    if not decode.any():
        return None
    length = (steps["end_s"] - steps["start_s"])[decode] * 1e3
    return [float(x) for x in np.quantile(length, (0.25, 0.75))]
