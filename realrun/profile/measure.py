"""Timing: every shape in several rounds spread over the whole measurement, warm-up discarded."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from realrun.models.config import ModelConfig
from realrun.pair import Pair
from realrun.profile.grid import Cell, Grid, context_of, work_of
from realrun.workers import BusyWork, DraftWork, Failed, TargetWork, Work, Worker, WorkerError

_DISCARDED = 2
_LOAD_MARGIN_S = 0.005  # for the other worker to get going


class Timings:
    """Times of every shape, gathered round by round.

    Parameters
    ----------
    pair
        Workers with room for the grid.
    grid
        Shapes.
    configs
        Of ``target`` and ``draft``; None for a drafter without a model.
    itemsize
        Bytes of a weight.
    """

    def __init__(
        self, pair: Pair, grid: Grid, configs: dict[str, ModelConfig | None], itemsize: int
    ) -> None:
        target = configs["target"]
        assert target is not None
        self._pair = pair
        self._k = grid.k
        self._configs = configs
        self._itemsize = itemsize
        self._vocab = target.vocab_size
        self._times: dict[Cell, list[float]] = {cell: [] for cell in grid.cells()}

    def add_round(self, repeats: int, progress: Callable[[], None] | None = None) -> None:
        """Time every shape once more.

        Parameters
        ----------
        repeats
            Passes of each, behind two that are discarded.
        progress
            Told of every shape that is done.
        """
        for cell, times in self._times.items():
            times += _time(self._pair, cell, self._k, self._vocab, repeats)
            if progress is not None:
                progress()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a shape.

        Returns
        -------
        list of dict
            model, phase, n_seqs, query_length, context, busy, n (passes), median_s, p25_s,
            p75_s; with a model also gb_per_s and gflop_per_s, what the median achieves.
        """
        return [
            _row(cell, times, self._configs[cell.model], self._itemsize)
            for cell, times in self._times.items()
        ]


def _time(pair: Pair, cell: Cell, k: int, vocab: int, repeats: int) -> list[float]:
    worker, other = pair.target, pair.draft
    if cell.model == "draft":
        assert pair.draft is not None
        worker, other = pair.draft, pair.target
    context = context_of(cell, vocab)
    if context is not None:
        _run(worker, context)
    work = work_of(cell, k, vocab)
    passes = k if cell.model == "draft" and cell.phase == "decode" else 1
    first = [_run(worker, work) for _ in range(_DISCARDED)]
    if not cell.busy:
        return [_run(worker, work) / passes for _ in range(repeats)]
    assert other is not None
    out: list[float] = []
    load = _load(cell, k, vocab)
    if isinstance(load, DraftWork):
        told = context_of(_opposite(cell), vocab)
        assert told is not None
        _run(other, told)
    window = (repeats + 1) * max(first)
    while len(out) < repeats:
        # Only passes that lie inside the other worker's busy time count.
        until = time.perf_counter() + _LOAD_MARGIN_S + window
        other.send(BusyWork(load, until))
        time.sleep(_LOAD_MARGIN_S)
        while time.perf_counter() < until and len(out) < repeats:
            seconds = _run(worker, work)
            if time.perf_counter() < until:
                out.append(seconds / passes)
        _receive(other)
        window *= 2  # where the machine is so loaded that no pass fits
    return out


def _opposite(cell: Cell) -> Cell:
    """Return what the other worker does meanwhile: draft for, or verify, a batch as large."""
    if cell.model == "target":
        return Cell("draft", "decode", cell.n_seqs, 1, cell.context)
    return Cell("target", "decode", cell.n_seqs, 5, cell.context)


def _load(cell: Cell, k: int, vocab: int) -> TargetWork | DraftWork:
    return work_of(_opposite(cell), k, vocab)


def _run(worker: Worker, work: Work) -> float:
    worker.send(work)
    return _receive(worker)


def _receive(worker: Worker) -> float:
    reply = worker.receive()
    if isinstance(reply, Failed):
        raise WorkerError(f"the {worker.name} worker failed: {reply.reason}", reply.details)
    assert reply is not None
    return reply.end - reply.start


def _row(
    cell: Cell, times: list[float], config: ModelConfig | None, itemsize: int
) -> dict[str, Any]:
    low, median, high = np.percentile(times, [25, 50, 75])
    row: dict[str, Any] = {
        "model": cell.model,
        "phase": cell.phase,
        "n_seqs": cell.n_seqs,
        "query_length": cell.query_length,
        "context": cell.context,
        "busy": cell.busy,
        "n": len(times),
        "median_s": float(median),
        "p25_s": float(low),
        "p75_s": float(high),
    }
    if config is not None:
        n_tokens = cell.n_seqs * cell.query_length
        attended = n_tokens * (cell.context + (cell.query_length + 1) / 2)
        moved = config.pass_bytes(cell.n_seqs * cell.context, itemsize)
        row["gb_per_s"] = moved / median / 1e9
        row["gflop_per_s"] = config.pass_flops(n_tokens, attended) / median / 1e9
    return row
