"""`psdsim calibrate`: a scenario from measured runs and a profile."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from psdsim.cli.output import check_output, write_text
from psdsim.errors import InputError
from psdsim.scenario import Scenario


def calibrate_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Runs (RUN.jsonl ...), and the profile (PROFILE.json) last."),
    ],
    output: Annotated[Path, typer.Option(help="Scenario file (.yaml) to write.")],
) -> None:
    """Fit a scenario to runs on real models: times, overheads, acceptance, traffic."""
    from psdsim.calibrate import calibrate, read_profile, read_run

    if output.suffix not in {".yaml", ".yml"}:
        raise InputError(f"'{output}' is no YAML file", expected=".yaml", where="--output")
    check_output(output, "--output")
    *paths, last = files
    if last.suffix != ".json" or not paths:
        raise InputError(
            f"the last file is '{last}'" if paths else "one file is named",
            expected="runs (.jsonl), then the profile (.json)",
            where="FILES",
        )
    if output.resolve() in {path.resolve() for path in files}:
        raise InputError(f"'{output}' is an input", expected="another file", where="--output")
    profile = read_profile(last)
    found = calibrate([read_run(path) for path in paths], profile, output.name)
    inputs = {path.resolve() for path in files}
    for name in found.files:
        place = output.parent / name
        check_output(place, "--output")
        if place.resolve() in inputs:
            raise InputError(
                f"'{place}' would be written over", expected="another name", where="--output"
            )
    # What does not load is never put in place.
    with tempfile.TemporaryDirectory() as folder:
        for name, text in found.files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        scenario = Scenario.load(Path(folder) / output.name)
        scenario.timers()
    scenario_text, *others = found.files.items()
    for name, text in [*others, scenario_text]:
        write_text(output.parent / name, text)
        typer.echo(f"written: {output.parent / name}", err=True)
