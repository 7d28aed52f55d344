"""How many bytes a parameter takes: dtype and quantisation keys of a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psdsim.errors import InputError, did_you_mean

_DTYPE_BYTES = {
    "bfloat16": 2.0,
    "float16": 2.0,
    "half": 2.0,
    "float32": 4.0,
    "float": 4.0,
    "float8_e4m3fn": 1.0,
}
_MXFP4_BYTES = 4.25 / 8  # 4 bits and an 8-bit scale for every 32 of them
_INTEGER = {"awq", "gptq", "awq_marlin", "gptq_marlin", "auto-round"}
_KNOWN = ["fp8", "fbgemm_fp8", "mxfp4", *sorted(_INTEGER), "compressed-tensors", "bitsandbytes"]


def storage(config: Mapping[str, Any], *, where: str, notes: list[str]) -> dict[str, Any]:
    """Return the storage fields of a :class:`~psdsim.hardware.ModelShape`.

    Parameters
    ----------
    config
        A config dictionary (``torch_dtype`` or ``dtype``, ``quantization_config``).
    where
        The file, for messages.
    notes
        Gets a line for every assumption made.

    Raises
    ------
    psdsim.errors.InputError
        If the dtype or the quantisation method is not known.

    Examples
    --------
    >>> storage({"dtype": "float16"}, where="config.json", notes=[])["linear_dtype_bytes"]
    2.0
    >>> quantized = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
    >>> storage(quantized, where="config.json", notes=[])["linear_dtype_bytes"]  # 4 bits + scales
    0.51953125
    """
    name = config.get("torch_dtype") or config.get("dtype")
    if name is None:
        notes.append("dtype is absent: bfloat16 assumed")
        name = "bfloat16"
    plain = _DTYPE_BYTES.get(str(name).removeprefix("torch."))
    if plain is None:
        raise InputError(
            f"the dtype is {name!r}", expected="one of " + ", ".join(_DTYPE_BYTES), where=where
        )
    kind, linear, expert = _quantized(config.get("quantization_config"), plain, where)
    return {
        "dtype_bytes": plain,
        "linear_dtype_bytes": linear,
        "expert_dtype_bytes": expert,
        "quantization": kind,
    }


def _quantized(entry: object, plain: float, where: str) -> tuple[str, float, float]:
    """Return (kind, bytes per linear parameter, bytes per expert parameter)."""
    if entry is None:
        return "none", plain, plain
    where = f"{where}: quantization_config"
    if not isinstance(entry, Mapping):
        raise InputError(f"it is {entry!r}", expected="an object", where=where)
    method = str(entry.get("quant_method"))
    if method in {"fp8", "fbgemm_fp8"}:
        return "fp8", 1.0, 1.0
    if method == "mxfp4":
        return "mxfp4", plain, _MXFP4_BYTES
    if method in _INTEGER:
        per_parameter = _grouped(
            entry.get("bits", entry.get("w_bit")), entry.get("group_size", 128), where
        )
        return "weight_only", per_parameter, per_parameter
    if method == "compressed-tensors":
        return _compressed_tensors(entry, where)
    if method == "bitsandbytes":
        per_parameter = 0.5 if entry.get("load_in_4bit") else 1.0
        return "weight_only", per_parameter, per_parameter
    raise InputError(
        f"quant_method is {method!r}{did_you_mean(method, _KNOWN)}",
        expected="one of " + ", ".join(_KNOWN),
        where=where,
    )


def _compressed_tensors(entry: Mapping[str, Any], where: str) -> tuple[str, float, float]:
    groups = entry.get("config_groups")
    group = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        raise InputError("key 'config_groups.<group>.weights' is missing", where=where)
    if weights.get("num_bits") == 8:
        return ("fp8" if weights.get("type") == "float" else "int8"), 1.0, 1.0
    per_parameter = _grouped(weights.get("num_bits"), weights.get("group_size") or -1, where)
    return "weight_only", per_parameter, per_parameter


def _grouped(bits: object, group_size: object, where: str) -> float:
    """Bytes per parameter: the bits, and per group a 16-bit scale and a zero point."""
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 16:
        raise InputError(f"'bits' is {bits!r}", expected="a whole number, 1 to 16", where=where)
    if isinstance(group_size, bool) or not isinstance(group_size, int):
        raise InputError(f"'group_size' is {group_size!r}", expected="a whole number", where=where)
    return bits / 8 + ((2 + bits / 8) / group_size if group_size > 0 else 0.0)
