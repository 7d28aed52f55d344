"""Hugging Face model folders: reading their safetensors, and writing such a folder at once."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from psdsim.errors import InputError
from realrun.models.decoder import Decoder
from realrun.models.weights import to_hf

if TYPE_CHECKING:
    from safetensors import safe_open

_INDEX = "model.safetensors.index.json"
_WRITTEN = frozenset({"config.json", "model.safetensors", "card.json"})


class Checkpoint:
    """The safetensors of a folder, one or sharded; tensors are read when asked for.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    psdsim.errors.InputError
        If they are missing, ambiguous or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._open: dict[Path, safe_open] = {}
        self._places: dict[str, Path] = {}
        for path in _files(folder):
            names: list[str] = list(self._file(path).keys())  # type: ignore[no-untyped-call]
            twice = [name for name in names if name in self._places]
            if twice:
                raise InputError(
                    f"the tensor '{twice[0]}' is also in {self._places[twice[0]].name}",
                    expected="every tensor once",
                    where=str(path),
                )
            self._places.update((name, path) for name in names)

    @property
    def names(self) -> list[str]:
        """Names of the tensors."""
        return list(self._places)

    def get(self, name: str) -> torch.Tensor:
        """Return a tensor in the precision it is stored in."""
        file = self._file(self._places[name])
        tensor: torch.Tensor = file.get_tensor(name)  # type: ignore[no-untyped-call]
        return tensor

    def _file(self, path: Path) -> safe_open:
        from safetensors import SafetensorError, safe_open

        if path not in self._open:
            try:
                self._open[path] = safe_open(path, framework="pt", device="cpu")
            except FileNotFoundError:
                raise InputError(
                    "is missing", expected="this shard, which the index names", where=str(path)
                ) from None
            except (OSError, SafetensorError):
                raise InputError(
                    "is cut off, or is no safetensors file",
                    expected="a whole safetensors file",
                    where=str(path),
                ) from None
        return self._open[path]


def _files(folder: Path) -> list[Path]:
    index = folder / _INDEX
    if index.exists():
        weights = read_json(index, "an index of safetensors").get("weight_map")
        if not isinstance(weights, dict) or not weights:
            raise InputError("lacks 'weight_map'", expected="names and files", where=str(index))
        return [folder / str(name) for name in sorted(set(weights.values()))]
    single = folder / "model.safetensors"
    found = [single] if single.exists() else sorted(folder.glob("*.safetensors"))
    if len(found) != 1:
        what = "no *.safetensors" if not found else f"{len(found)} *.safetensors and no {_INDEX}"
        raise InputError(
            f"holds {what}",
            expected="one file of weights, or several and their index (.bin files are not read)",
            where=str(folder),
        )
    return found


def read_config(folder: Path) -> dict[str, Any]:
    """Return what a folder's ``config.json`` holds."""
    return read_json(folder / "config.json", "a config.json")


def read_json(path: Path, expected: str) -> dict[str, Any]:
    """Return a JSON object in a file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        what = f"can't be read: {error.strerror}"
        raise InputError(what, expected=expected, where=str(path)) from None
    except ValueError:
        raise InputError("is not JSON", expected=expected, where=str(path)) from None
    if not isinstance(data, dict):
        raise InputError("holds no JSON object", expected=expected, where=str(path))
    return data


def save_model(decoder: Decoder, folder: Path, dtype: torch.dtype, card: Mapping[str, Any]) -> None:
    """Write ``config.json``, ``model.safetensors`` and ``card.json``, all of them or none.

    Parameters
    ----------
    decoder
        The model.
    folder
        Made, or replaced if it holds a model written by this function.
    dtype
        Precision of the weights in the file.
    card
        How the model came about: anything JSON can say.

    Raises
    ------
    psdsim.errors.InputError
        If the folder holds something else.
    """
    from safetensors.torch import save_file

    folder = Path(folder).absolute()
    if folder.exists():
        others = ["a file"] if not folder.is_dir() else sorted(os.listdir(folder))
        others = [name for name in others if name not in _WRITTEN]
        if others:
            raise InputError(
                f"is not replaced, since it holds {others[0]}",
                expected="a new folder, or one that holds a saved model alone",
                where=str(folder),
            )
    config = {**decoder.config.to_hf(), "dtype": str(dtype).removeprefix("torch.")}
    texts = {"config.json": config, "card.json": dict(card)}
    tensors = {name: value.to("cpu", dtype) for name, value in to_hf(decoder).items()}
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the folder, so that renaming stays within a file system.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as work:
        made, old = Path(work) / "new", Path(work) / "old"
        made.mkdir()
        for name, data in texts.items():
            text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
            (made / name).write_text(text, encoding="utf-8")
        save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
        (made / "model.safetensors").chmod(0o644)  # safetensors makes it private
        if folder.exists():
            folder.rename(old)
        try:
            made.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
