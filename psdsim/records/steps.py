"""Step records: tuples while the run goes on, columns (or a Parquet file) afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.records.columns import STEP_COLUMNS

StepRow = tuple[float | int, ...]
"""One step, in the order of `STEP_COLUMNS`."""

_CHUNK = 1 << 16


class StepLog:
    """Collects step rows; turns them into columns in chunks so that tuples never pile up.

    Parameters
    ----------
    on_chunk
        Told of every chunk of columns, in order.
    keep
        Keep the columns in memory.
    parquet
        Stream the rows to this file and keep none in memory.
    """

    def __init__(
        self,
        on_chunk: Callable[[dict[str, NDArray[Any]]], None] | None = None,
        *,
        keep: bool = True,
        parquet: Path | None = None,
    ) -> None:
        self._on_chunk = on_chunk
        self._keep = keep and parquet is None
        self._rows: list[StepRow] = []
        self._chunks: list[dict[str, NDArray[Any]]] = []
        self._path = parquet
        self._writer: Any = None
        self.n_rows = 0

    def append(self, row: StepRow) -> None:
        """Add one step."""
        rows = self._rows
        rows.append(row)
        if len(rows) >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        values = zip(*self._rows, strict=True)
        chunk = {
            name: np.array(column, dtype=dtype)
            for (name, dtype), column in zip(STEP_COLUMNS.items(), values, strict=True)
        }
        self.n_rows += len(self._rows)
        self._rows.clear()
        if self._on_chunk is not None:
            self._on_chunk(chunk)
        if self._keep:
            self._chunks.append(chunk)
        if self._path is not None:
            self._stream(chunk)

    def _stream(self, chunk: dict[str, NDArray[Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(chunk)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def close(self) -> dict[str, NDArray[Any]]:
        """Return all columns, shape (n_steps,) each; empty columns where rows went to a file."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
        if not self._chunks:
            return {name: np.empty(0, dtype=dtype) for name, dtype in STEP_COLUMNS.items()}
        return {
            name: np.concatenate([chunk[name] for chunk in self._chunks]) for name in STEP_COLUMNS
        }
