"""Options that commands share, and how their texts are read."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from psdsim.acceptance import AcceptanceModel, IidAcceptance
from psdsim.errors import InputError
from realrun.build import DTYPES
from realrun.workers import DeviceName
from realrun.workers.pin import available_cores


def whole(text: str | int) -> int:
    """Return a whole number; refusals say what was found."""
    if isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,9}", text.strip()) is None:
        raise ValueError(f"found '{text[:60]}'; expected a whole number of at most 9 digits")
    return int(text)


Seed = Annotated[int, typer.Option(help="Root of all randomness.", parser=whole, metavar="INTEGER")]
Output = Annotated[Path | None, typer.Option(help="Write the records to this file.")]
Target = Annotated[
    str,
    typer.Option(
        help="Target: builtin:target, smollm2, a Hugging Face folder, a .gguf file, or "
        "random:config.json (random weights, for timing)."
    ),
]
Drafter = Annotated[
    str | None,
    typer.Option(
        help="Drafter: builtin:draft, builtin:distilled, ngram, early-exit:N (the target's first "
        "N layers), or a model as under --target; none: builtin:draft.",
        show_default=False,
    ),
]
DEFAULT_DRAFTER = "builtin:draft"
TargetDevice = Annotated[
    str | None,
    typer.Option(help="cpu:N (core N) or cuda:N; none: the first core.", show_default=False),
]
DraftDevice = Annotated[
    str | None,
    typer.Option(help="The same for the drafter; none: another core.", show_default=False),
]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16, for both models.")]


def devices(target: str | None, draft: str | None) -> tuple[DeviceName, DeviceName]:
    """Return both devices.

    Raises
    ------
    psdsim.errors.InputError
        If a device doesn't exist, or there is one core for both.
    """
    cores = [f"cpu:{core}" for core in available_cores()]
    first = target if target is not None else cores[0]
    others = [core for core in cores if core != first]
    if draft is None and not others:
        raise InputError(
            "this machine gives the process one core", expected="two, one for each model"
        )
    second = draft if draft is not None else others[0]
    return (
        DeviceName.parse(first, "--target-device"),
        DeviceName.parse(second, "--draft-device"),
    )


def check_dtype(name: str) -> str:
    """Return the name of a precision that exists."""
    if name not in DTYPES:
        raise InputError(f"'{name}' is no precision", expected=", ".join(DTYPES), where="--dtype")
    return name


def at_least(value: int, least: int, where: str, most: int = 10**6) -> int:
    """Return a number in its range."""
    if not least <= value <= most:
        raise InputError(f"found {value}", expected=f"{least} to {most}", where=where)
    return value


def forced_acceptance(text: str | None) -> AcceptanceModel | None:
    """Return the model of ``--accept``: a rate for independent drafts, or a scenario file's.

    Raises
    ------
    psdsim.errors.InputError
        If it is neither a rate nor a file with an acceptance model.
    """
    if text is None:
        return None
    try:
        alpha = float(text)
    except ValueError:
        return _acceptance_of(Path(text))
    if not math.isfinite(alpha) or not 0 <= alpha <= 1:
        raise InputError(f"found {text}", expected="a rate from 0 to 1", where="--accept")
    return IidAcceptance(alpha=alpha)


def _acceptance_of(path: Path) -> AcceptanceModel:
    from psdsim.scenario import Scenario

    if not path.is_file():
        raise InputError(
            f"found '{path}'", expected="a rate from 0 to 1, or a scenario file",
            where="--accept",
        )  # fmt: skip
    model = Scenario.load(path).acceptance
    if model is None:
        raise InputError("states no acceptance", where=str(path))
    return model


def arrivals(n: int, rate: float | None, seed: int) -> np.ndarray:
    """Return arrival times: all at once, or Poisson at `rate` requests a second."""
    if rate is None:
        return np.zeros(n)
    if not 0 < rate < math.inf:
        raise InputError(
            f"found {rate}", expected="requests per second above 0", where="--request-rate"
        )
    from psdsim.seeds import Stream, generator

    gaps = generator(seed, 0, Stream.ARRIVALS).exponential(1 / rate, n)
    return np.cumsum(gaps)
