"""Which shapes are timed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from psdsim.errors import InputError
from realrun.workers import DraftWork, TargetWork


@dataclass(frozen=True)
class Cell:
    """One shape of one model.

    Parameters
    ----------
    model
        Whose pass.
    phase
        ``decode``, or ``prefill`` (whole prompts: no context, one answer a row).
    n_seqs, query_length, context
        Rows, new tokens of each, cached tokens of each. A decode cell of the drafter is one
        forward of a drafting phase.
    busy
        Whether the other worker works meanwhile.
    """

    model: Literal["target", "draft"]
    phase: Literal["decode", "prefill"]
    n_seqs: int
    query_length: int
    context: int
    busy: bool = False


@dataclass(frozen=True)
class Grid:
    """The axes.

    Parameters
    ----------
    n_seqs
        Batch sizes.
    query_lengths
        New tokens a row of target passes: 1 is plain decoding, k + 1 verifies k drafts.
    contexts
        Cached tokens a row.
    prompts
        Prompt lengths.
    k
        Length of the drafting phases that a draft forward is taken from.
    """

    n_seqs: tuple[int, ...] = (1, 2, 4, 8)
    query_lengths: tuple[int, ...] = (1, 2, 3, 5, 7, 9)
    contexts: tuple[int, ...] = (64, 160, 256)
    prompts: tuple[int, ...] = (32, 64, 128, 256)
    k: int = 4

    def __post_init__(self) -> None:
        for name in ("n_seqs", "query_lengths", "contexts", "prompts"):
            axis = getattr(self, name)
            if not axis or list(axis) != sorted(set(axis)) or axis[0] < 1:
                raise InputError(
                    f"found {list(axis)}",
                    expected="whole numbers of at least 1, ascending, each once",
                    where="--batches" if name == "n_seqs" else "--" + name.replace("_", "-"),
                )

    @property
    def max_length(self) -> int:
        """Longest text that is timed."""
        longest = self.contexts[-1] + max(self.query_lengths[-1], self.k + 2)
        return max(longest, self.prompts[-1] + 1)

    def cells(self) -> list[Cell]:
        """Return all shapes: full grids alone, and under load at the ends of each axis."""
        cells = []
        for n, context in product(self.n_seqs, self.contexts):
            cells += [Cell("target", "decode", n, q, context) for q in self.query_lengths]
            cells.append(Cell("draft", "decode", n, 1, context))
        for n, prompt in product(self.n_seqs, self.prompts):
            cells += [Cell(model, "prefill", n, prompt, 0) for model in ("target", "draft")]
        middle = self.contexts[len(self.contexts) // 2]
        for n in self.n_seqs:
            cells += [
                Cell("target", "decode", n, q, middle, busy=True) for q in self.query_lengths[::2]
            ]
            cells.append(Cell("draft", "decode", n, 1, middle, busy=True))
        return cells


def work_of(cell: Cell, k: int, vocab_size: int) -> TargetWork | DraftWork:
    """Return the piece of work that a cell times; tokens are arbitrary."""
    n = cell.n_seqs
    rows = np.arange(n, dtype=np.int64)
    ones = np.ones(n, dtype=np.int64)
    rng = np.random.default_rng(0)
    if cell.model == "target":
        lengths = ones * cell.query_length
        tokens = rng.integers(0, vocab_size, int(lengths.sum()))
        prefill = cell.phase == "prefill"
        return TargetWork(rows, ones * cell.context, lengths, tokens, prefill)
    if cell.phase == "prefill":
        tokens = rng.integers(0, vocab_size, n * cell.query_length)
        return DraftWork(rows, rows, ones * 0, tokens, ones * cell.query_length, ones * 0)
    # The drafter knows the context but for its last token, which every phase feeds anew.
    tokens = rng.integers(0, vocab_size, n)
    return DraftWork(rows, rows, ones * cell.context, tokens, ones, ones * k)


def context_of(cell: Cell, vocab_size: int) -> DraftWork | None:
    """Return the work that gives the drafter a cell's context first; None: none is needed."""
    if cell.model == "target" or cell.phase == "prefill":
        return None
    n = cell.n_seqs
    rows = np.arange(n, dtype=np.int64)
    ones = np.ones(n, dtype=np.int64)
    tokens = np.random.default_rng(1).integers(0, vocab_size, n * (cell.context + 1))
    return DraftWork(rows, rows, ones * 0, tokens, ones * (cell.context + 1), ones * 0)
