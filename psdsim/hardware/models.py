"""Find a model's shape: a built-in name, or the path of a ``config.json``."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml

from psdsim.errors import InputError, did_you_mean
from psdsim.hardware.hf_config import shape_from_config
from psdsim.hardware.shape import ModelShape

# Published under several names with one and the same shape.
_SAME_SHAPE = {
    "meta-llama/Meta-Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Llama-3.1-8B",
    "meta-llama/Meta-Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "meta-llama/Llama-3.1-70B-Instruct": "meta-llama/Llama-3.1-70B",
    "meta-llama/Llama-3.3-70B-Instruct": "meta-llama/Llama-3.1-70B",
    "meta-llama/Llama-3.1-405B-Instruct": "meta-llama/Llama-3.1-405B",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": "meta-llama/Llama-4-Scout-17B-16E",
}


@cache
def _built_in() -> dict[str, ModelShape]:
    text = files("psdsim.hardware").joinpath("models.yaml").read_text(encoding="utf-8")
    shapes = {name: ModelShape(name=name, **row) for name, row in yaml.safe_load(text).items()}
    same = {
        alias: shapes[name].model_copy(update={"name": alias})
        for alias, name in _SAME_SHAPE.items()
    }
    return shapes | same


@cache
def _by_key() -> dict[str, str]:
    names = _built_in()
    return {n.rsplit("/", 1)[1].casefold(): n for n in names} | {n.casefold(): n for n in names}


def model_names() -> list[str]:
    """Return the built-in names :func:`model_shape` knows.

    Examples
    --------
    >>> "Qwen/Qwen3-32B" in model_names()
    True
    """
    return list(_built_in())


def model_shape(
    name_or_path: str | Path, *, base_dir: Path | None = None, where: str | None = None
) -> ModelShape:
    """Return the shape of a model; reads a file when given a path.

    Parameters
    ----------
    name_or_path
        A built-in Hugging Face name (the part after the slash is enough, case doesn't matter),
        the path of a ``config.json``, or a folder that holds one.
    base_dir
        Folder that a relative path starts from; default the current one.
    where
        File and key the name was read from, put in front of the message.

    Raises
    ------
    psdsim.errors.InputError
        If neither is found, the JSON is malformed, or a key is missing or wrong.

    Examples
    --------
    >>> model_shape("Qwen/Qwen3-32B").kv_bytes_per_token()
    262144.0
    >>> model_shape("qwen3-0.6b").tied
    True
    """
    built_in = _by_key().get(str(name_or_path).casefold())
    if built_in is not None:
        return _built_in()[built_in]
    path = (base_dir or Path()) / name_or_path
    if path.is_dir():
        path = path / "config.json"
    if not path.is_file():
        looks_like_path = path.suffix == ".json" or str(name_or_path).startswith((".", "/"))
        hint = "" if looks_like_path else did_you_mean(str(name_or_path), _built_in())
        what = (
            f"no file {path}" if looks_like_path else f"unknown model {str(name_or_path)!r}{hint}"
        )
        raise InputError(
            what,
            expected="the path of a config.json, or one of " + ", ".join(_built_in()),
            where=where,
        )
    try:
        return _from_file(path)
    except InputError as error:
        raise (error.at(where) if where else error) from None


def _from_file(path: Path) -> ModelShape:
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise InputError(
            f"not valid JSON: {error.msg.lower()} at column {error.colno}",
            expected="a Hugging Face config.json",
            where=f"{path}: line {error.lineno}",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"can't be read: {error}", expected="a UTF-8 text file", where=str(path)
        ) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets without end
        raise InputError(
            "not JSON that can be read", expected="a Hugging Face config.json", where=str(path)
        ) from None
    return shape_from_config(config, name=path.parent.name or path.stem, where=str(path))
