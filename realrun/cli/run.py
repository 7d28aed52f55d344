"""`realrun run`: one schedule on real models, recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from psdsim.errors import InputError
from psdsim.records.files import check_output, write_text
from psdsim.schedules import SCHEDULES
from realrun.cli.options import (
    DEFAULT_DRAFTER,
    DraftDevice,
    Drafter,
    Dtype,
    Output,
    Seed,
    Target,
    TargetDevice,
    arrivals,
    at_least,
    check_dtype,
    devices,
    forced_acceptance,
    whole,
)
from realrun.cli.report import tell_lossless, tell_run
from realrun.executor import Job, RunResult
from realrun.executor.limits import check_budget
from realrun.jobs import make_prompts, warm_up
from realrun.lossless import compare
from realrun.methods import check_knobs, runnable
from realrun.models.load import tokenizer_of
from realrun.pair import open_pair
from realrun.session import RunOptions, lines
from realrun.session import run as run_once


def run_command(
    schedule: Annotated[
        str,
        typer.Option(
            help=f"Schedule: {', '.join(SCHEDULES)}; or a method with its knobs "
            "(tetris:extra=2), as 'psdsim methods' lists them."
        ),
    ] = "minedraft",
    k: Annotated[
        int | None,
        typer.Option(
            help="Drafted tokens per round; none: 4.",
            parser=whole,
            metavar="INTEGER",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int,
        typer.Option(
            help="Requests verified per step; minedraft has two groups of them in flight.",
            parser=whole,
            metavar="INTEGER",
        ),
    ] = 4,
    target: Target = "builtin:target",
    draft: Drafter = None,
    prompts: Annotated[
        Path | None,
        typer.Option(
            help="Prompts, one a line (or .jsonl with 'prompt'); none: held-out source code, or "
            "random tokens for random weights.",
            show_default=False,
        ),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(
            help="Requests; none: twice what is in flight, or all prompts of the file.",
            parser=whole,
            metavar="INTEGER",
            show_default=False,
        ),
    ] = None,
    prompt_tokens: Annotated[
        int,
        typer.Option(
            help="Tokens of a prompt (of a file: at most).", parser=whole, metavar="INTEGER"
        ),
    ] = 128,
    output_tokens: Annotated[
        int, typer.Option(help="Tokens to generate.", parser=whole, metavar="INTEGER")
    ] = 64,
    request_rate: Annotated[
        float | None,
        typer.Option(help="Poisson arrivals, requests/s; none: all at once.", show_default=False),
    ] = None,
    temperature: Annotated[float, typer.Option(help="0: greedy; above: sampled.")] = 0.0,
    stop_at_eos: Annotated[
        bool, typer.Option("--stop-at-eos", help="Stop at the end-of-text token.")
    ] = False,
    accept: Annotated[
        str | None,
        typer.Option(
            help="Force acceptance: a rate, or the acceptance model of a scenario file; none: "
            "the real test.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    target_device: TargetDevice = None,
    draft_device: DraftDevice = None,
    dtype: Dtype = "float32",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Decode plainly too, and compare the texts (greedy; exit code 1: not equal).",
        ),
    ] = False,
    output: Output = None,
) -> None:
    """Run a schedule on real models: text, step and request records, a summary."""
    if output is not None:
        check_output(output, "--output")
    if not 0 <= temperature < 100:
        raise InputError(f"found {temperature}", expected="0 to 100", where="--temperature")
    if runnable(schedule).schedule.drafts:
        k, draft = 4 if k is None else k, draft or DEFAULT_DRAFTER
    else:
        for name, value in (("--k", k), ("--draft", draft), ("--accept", accept)):
            if value is not None:
                raise InputError(f"{schedule} drafts nothing, so {name} has no effect", where=name)
        k, draft = 0, DEFAULT_DRAFTER
    forced = forced_acceptance(accept)
    if forced is None:
        check_knobs(schedule)
    if forced is not None and stop_at_eos:
        raise InputError(
            "texts of forced acceptance mean nothing", expected="no end of text",
            where="--stop-at-eos",
        )  # fmt: skip
    if (check or forced is not None) and temperature > 0:
        raise InputError(
            "a temperature samples, and neither --check nor forced acceptance judges samples",
            expected="one of them",
            where="--temperature",
        )
    if check and forced is not None:
        raise InputError(
            "texts of forced acceptance mean nothing", expected="no --accept", where="--check"
        )
    first, second = devices(target_device, draft_device)
    options = RunOptions(
        schedule, k, at_least(batch, 1, "--batch", 1024), target, draft, first, second,
        check_dtype(dtype), temperature, seed, forced,
    )  # fmt: skip
    made = options.make_schedule()
    texts = make_prompts(
        target, prompts, requests, 2 * made.capacity,
        at_least(prompt_tokens, 1, "--prompt-tokens"), seed,
    )  # fmt: skip
    lengths = np.full(len(texts), at_least(output_tokens, 1, "--output-tokens"))
    eos_id = tokenizer_of(target).eos_id if stop_at_eos else None
    if stop_at_eos and eos_id is None:
        raise InputError(f"{target} has no end-of-text token", where="--stop-at-eos")
    job = Job(texts, lengths, arrivals(len(texts), request_rate, seed), eos_id)
    check_budget(made, job)
    plain = replace(options, schedule="ar", k=0) if check else None
    with open_pair(*options.specs(made.capacity, options.max_length(job))) as pair:
        _complete(run_once(options, warm_up(job, made.capacity), pair))
        reference = _complete(run_once(plain, job, pair)) if plain is not None else None
        result = run_once(options, job, pair)
    if output is not None:
        write_text(output, lines(options, result))
    tell_run(options, result)
    if result.failure is not None:
        kept = "" if output is None else f"the records in {output} are partial"
        if result.failure == "interrupted":
            if kept:
                typer.echo(f"realrun: {kept}", err=True)
            raise KeyboardInterrupt
        raise InputError("; ".join(filter(None, (result.failure, kept))))
    if reference is not None:
        verdict = compare(target, dtype, job, reference.outputs, result.outputs)
        tell_lossless(verdict)
        if not verdict.passed:
            raise typer.Exit(1)


def _complete(result: RunResult) -> RunResult:
    """Return a run of which nothing is recorded; one that was cut short ends the command."""
    if result.failure == "interrupted":
        raise KeyboardInterrupt
    if result.failure is not None:
        raise InputError(result.failure)
    return result
