"""`realrun profile`: step-time tables of both models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from psdsim.errors import InputError
from psdsim.records.files import check_output, write_text
from realrun.build import DTYPES
from realrun.cli.options import (
    DEFAULT_DRAFTER,
    DraftDevice,
    Drafter,
    Dtype,
    Target,
    TargetDevice,
    at_least,
    check_dtype,
    devices,
    whole,
)
from realrun.pair import open_pair
from realrun.profile.describe import configs_of, describe
from realrun.profile.grid import Grid
from realrun.profile.measure import Timings
from realrun.session import RunOptions
from realrun.workers import WorkerError


def profile_command(
    target: Target = "builtin:target",
    draft: Drafter = None,
    batches: Annotated[str, typer.Option(help="Batch sizes.")] = "1,2,4,8",
    query_lengths: Annotated[
        str, typer.Option(help="New tokens a sequence of target passes (k + 1).")
    ] = "1,2,3,5,7,9",
    contexts: Annotated[str, typer.Option(help="Cached tokens a sequence.")] = "64,160,256",
    prompts: Annotated[str, typer.Option(help="Prompt lengths.")] = "32,64,128,256",
    rounds: Annotated[
        int, typer.Option(help="Times the grid is gone through.", parser=whole, metavar="INTEGER")
    ] = 4,
    repeats: Annotated[
        int,
        typer.Option(help="Passes of a shape in each round.", parser=whole, metavar="INTEGER"),
    ] = 8,
    target_device: TargetDevice = None,
    draft_device: DraftDevice = None,
    dtype: Dtype = "float32",
    output: Annotated[Path, typer.Option(help="Where the profile goes (JSON).")] = Path(
        "profile.json"
    ),
) -> None:
    """Time passes over batch x query length x context, alone and while the other model works."""
    check_output(output, "--output")
    grid = Grid(
        _axis(batches, "--batches"),
        _axis(query_lengths, "--query-lengths"),
        _axis(contexts, "--contexts"),
        _axis(prompts, "--prompts"),
    )
    n_rounds = at_least(rounds, 1, "--rounds")
    n_repeats = at_least(repeats, 1, "--repeats")
    first, second = devices(target_device, draft_device)
    options = RunOptions(
        "sd", 1, 1, target, draft or DEFAULT_DRAFTER, first, second, check_dtype(dtype)
    )
    with open_pair(*options.specs(grid.n_seqs[-1], grid.max_length)) as pair:
        timings = Timings(pair, grid, configs_of(options), DTYPES[options.dtype].itemsize)
        n_shapes = n_rounds * len(grid.cells())
        stderr = typer.get_text_stream("stderr")
        with typer.progressbar(length=n_shapes, label="profiling", file=stderr) as bar:
            try:
                for _ in range(n_rounds):
                    timings.add_round(n_repeats, lambda: bar.update(1))
            except WorkerError as error:
                raise InputError(str(error)) from error
    profile = describe(options, timings.rows())
    write_text(output, json.dumps(profile, indent=1) + "\n")
    _tell(profile, output)


def _axis(text: str, where: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"found '{text}'", expected="whole numbers with commas between", where=where
        ) from None


def _tell(profile: dict[str, Any], output: Path) -> None:
    typer.echo(
        "model  phase   n_seqs query context busy   median ms      p25      p75   GB/s  GFLOP/s"
    )
    for row in profile["rows"]:
        rates = "".join(
            f"{row[key]:9.1f}" if key in row else "        -" for key in ("gb_per_s", "gflop_per_s")
        )
        busy = "yes" if row["busy"] else "no"
        low, middle, high = (1e3 * row[key] for key in ("p25_s", "median_s", "p75_s"))
        typer.echo(
            f"{row['model']:<6} {row['phase']:<7} {row['n_seqs']:6d} {row['query_length']:5d} "
            f"{row['context']:7d} {busy:<4} {middle:11.3f} {low:8.3f} {high:8.3f}{rates}"
        )
    typer.echo(f"written: {output}")
