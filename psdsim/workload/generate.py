"""Draw (or read) the requests of a workload."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from psdsim.seeds import Stream, generator
from psdsim.workload.arrivals import arrival_times
from psdsim.workload.kinds import (
    BatchWorkload,
    ConcurrencyWorkload,
    GammaWorkload,
    PoissonWorkload,
    TraceWorkload,
)
from psdsim.workload.lengths import draw_lengths, length_note
from psdsim.workload.requests import Requests

VLLM_NOTE = (
    "vllm semantics: arrival times are rescaled so that the last is n_requests/rate; "
    "this is not a Poisson process, so queueing formulas do not apply"
)


def generate(
    workload: BatchWorkload | ConcurrencyWorkload | PoissonWorkload | GammaWorkload | TraceWorkload,
    root_seed: int,
    replication: int,
    base_dir: Path | None = None,
) -> Requests:
    """Return the requests of one replication of a workload.

    Parameters
    ----------
    workload
        What to generate.
    root_seed, replication
        Key of the random streams, >= 0. A trace uses no randomness: every replication is
        the same.
    base_dir
        Folder that a relative trace path starts from; ``None``: the current one.

    Returns
    -------
    Requests
        Sorted by arrival. Arrivals, prompt lengths and output lengths come from streams of
        their own, so changing one leaves the others as they were; ``rate`` scales the same
        gaps; a longer run starts with the shorter one (except for the ``vllm`` semantics).

    Raises
    ------
    InputError
        If a trace cannot be read (file and line named), or times overflow.

    Examples
    --------
    >>> batch = BatchWorkload(n_requests=2, prompt_tokens=256, output_tokens=64)
    >>> requests = generate(batch, root_seed=0, replication=0)
    >>> requests.arrival_s.tolist(), requests.output_tokens.tolist()
    ([0.0, 0.0], [64, 64])
    """
    if isinstance(workload, TraceWorkload):
        # Only traces need pandas; a synthetic run starts without paying for its import.
        from psdsim.workload.traces import read_trace

        return read_trace(workload, base_dir)

    n = workload.n_requests
    notes: list[str] = []
    # The block index tells the two columns of the LENGTHS stream apart.
    lengths: list[NDArray[np.int64]] = []
    for block, name in enumerate(("prompt_tokens", "output_tokens")):
        law = getattr(workload, name)
        drawn = draw_lengths(law, n, generator(root_seed, replication, Stream.LENGTHS, block))
        lengths.append(drawn)
        note = length_note(name, law, drawn)
        if note is not None:
            notes.append(note)

    if isinstance(workload, PoissonWorkload | GammaWorkload):
        rng = generator(root_seed, replication, Stream.ARRIVALS)
        if isinstance(workload, GammaWorkload):
            shape = workload.burstiness
            gaps = rng.standard_gamma(shape, n) / shape
        else:
            gaps = rng.standard_exponential(n)
        if workload.semantics == "vllm":
            notes.append(VLLM_NOTE)
        return Requests(
            arrival_times(gaps, workload.rate, workload.semantics),
            lengths[0],
            lengths[1],
            open_loop=True,
            notes=tuple(notes),
        )
    return Requests(
        np.zeros(n),
        lengths[0],
        lengths[1],
        concurrency=workload.concurrency if isinstance(workload, ConcurrencyWorkload) else None,
        notes=tuple(notes),
    )
