"""The layout of a GGUF file (llama.cpp's docs/gguf.md): metadata, then mapped tensors.

The package gguf has a reader too, which makes several arrays of every token and so takes
seconds for a vocabulary; what a block of quantised weights means is still left to the package.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
# gguf_metadata_value_type -> struct's letter.
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_MAX_DIMS = 8


@dataclass(frozen=True)
class GgufTensor:
    """A tensor in the file.

    Parameters
    ----------
    name
        llama.cpp's name.
    shape
        Its shape, rows first (the file has it the other way round).
    kind
        Number of its quantisation (``gguf.GGMLQuantizationType``).
    raw
        Its bytes, mapped, shape (n_bytes,).
    """

    name: str
    shape: tuple[int, ...]
    kind: int
    raw: NDArray[np.uint8]

    @property
    def kind_name(self) -> str:
        """What its quantisation is called."""
        from gguf import GGMLQuantizationType

        return GGMLQuantizationType(self.kind).name

    def values(self) -> NDArray[np.float32]:
        """Return it dequantised.

        Raises
        ------
        NotImplementedError
            If the package gguf can't.
        """
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        flat = dequantize(self.raw, GGMLQuantizationType(self.kind))
        # A copy where dequantising made none: the file is mapped read-only.
        return np.array(flat, dtype=np.float32).reshape(self.shape)


def read_gguf(path: Path) -> tuple[dict[str, Any], list[GgufTensor]]:
    """Return the metadata and the tensors of a file.

    Raises
    ------
    psdsim.errors.InputError
        If it is cut off, is no GGUF file, or the package gguf is missing.
    """
    try:
        import gguf  # noqa: F401
    except ImportError:
        raise InputError(
            "GGUF files need the package gguf",
            expected="an installation with `pip install 'psdsim[realrun]'`",
            where=str(path),
        ) from None
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        data = None  # an empty file can't be mapped
    except OSError as error:
        what = f"can't be read: {error.strerror}"
        raise InputError(what, expected="a GGUF file", where=str(path)) from None
    if data is None or data[:4] != _MAGIC:
        raise InputError("is no GGUF file", expected="'GGUF' at its start", where=str(path))
    try:
        return _Cursor(data).read()
    except (struct.error, IndexError, ValueError, OverflowError):
        # Lengths that point past the end, or to what is no text.
        raise InputError(
            "is cut off or damaged", expected="a whole GGUF file of version 2 or 3", where=str(path)
        ) from None


class _Cursor:
    """Reads on from a place in the file, little-endian."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = len(_MAGIC)

    def read(self) -> tuple[dict[str, Any], list[GgufTensor]]:
        version, n_tensors, n_pairs = self._numbers("IQQ")
        if version not in _VERSIONS:
            raise ValueError(version)
        metadata = {}
        for _ in range(n_pairs):
            name = self._text()
            metadata[name] = self._value(*self._numbers("I"))
        heads = [self._tensor_head() for _ in range(n_tensors)]
        step = metadata.get("general.alignment", 32)
        if type(step) is not int or step < 1:
            raise ValueError(step)
        start = -(-self._at // step) * step
        return metadata, [self._tensor(start, *head) for head in heads]

    def _numbers(self, letters: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{letters}", self._data, self._at)
        self._at += struct.calcsize(f"<{letters}")
        return found

    def _text(self) -> str:
        (n,) = struct.unpack_from("<Q", self._data, self._at)
        first, self._at = self._at + 8, self._at + 8 + n
        if self._at > len(self._data):
            raise IndexError
        return self._data[first : self._at].decode("utf-8")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            return self._numbers(_letter(kind))[0]
        inner, n = self._numbers("IQ")
        if n > len(self._data):  # every element takes a byte at least
            raise IndexError
        if inner in (_STRING, _ARRAY):
            return [self._value(inner) for _ in range(n)]
        return list(self._numbers(f"{n}{_letter(inner)}"))

    def _tensor_head(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._text()
        (n_dims,) = self._numbers("I")
        if n_dims > _MAX_DIMS:
            raise ValueError(n_dims)
        shape = self._numbers(f"{n_dims}Q")[::-1]
        kind, offset = self._numbers("IQ")
        return name, shape, kind, offset

    def _tensor(
        self, start: int, name: str, shape: tuple[int, ...], kind: int, offset: int
    ) -> GgufTensor:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        if shape and shape[-1] % block:
            raise ValueError(shape)
        n_bytes = math.prod(shape) // block * size
        # frombuffer raises ValueError where the file ends before.
        raw = np.frombuffer(self._data, np.uint8, n_bytes, start + offset)
        return GgufTensor(name, shape, kind, raw)


def _letter(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(kind)
    return _SCALARS[kind]
