"""Data sheets of GPUs by name, each with its source."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict, Field

from psdsim.errors import InputError, did_you_mean
from psdsim.hardware.fields import NonNegative, Positive, PositiveCount


class Gpu(BaseModel):
    """One GPU: what it can store, move and compute, as its data sheet says.

    All figures are dense and peak; :class:`psdsim.latency.RooflineStepTime` holds the efficiencies.

    Examples
    --------
    >>> h100 = gpu("H100-SXM")
    >>> round(h100.bf16_flops / h100.bandwidth_bytes_per_s)  # tokens at which weights stop binding
    295
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="Name used in scenario files.")
    memory_bytes: PositiveCount = Field(description="Device memory, bytes.")
    bandwidth_bytes_per_s: Positive = Field(description="Memory bandwidth, bytes/s.")
    bf16_flops: Positive = Field(description="Dense BF16 matrix rate, FLOP/s.")
    fp8_flops: Positive | None = Field(
        default=None, description="Dense FP8 matrix rate, FLOP/s; null if the GPU has none."
    )
    link: str = Field(default="PCIe", description="Interconnect used by tensor parallelism.")
    link_bytes_per_s: Positive = Field(
        description="Interconnect bandwidth per GPU and direction, bytes/s."
    )
    link_latency_s: NonNegative = Field(description="Fixed time of one all-reduce, s.")
    link_assumed: bool = Field(
        default=False, description="True where no source states the interconnect figure."
    )
    source: str = Field(description="Where the figures were read.")
    note: str | None = Field(default=None, description="Conflicts between sources.")


@cache
def _table() -> dict[str, Gpu]:
    text = files("psdsim.hardware").joinpath("gpus.yaml").read_text(encoding="utf-8")
    return {name: Gpu(name=name, **row) for name, row in yaml.safe_load(text).items()}


def _key(name: str) -> str:
    return name.strip().replace(" ", "-").replace("_", "-").casefold()


_ALIASES = {"h200": "H200-SXM", "rtx-a6000": "A6000", "a100-40g-sxm": "A100-40G"}


def gpu_names() -> list[str]:
    """Return the names :func:`gpu` knows.

    Examples
    --------
    >>> "L40S" in gpu_names()
    True
    """
    return list(_table())


def gpu(name: str, *, where: str | None = None) -> Gpu:
    """Return the data sheet of one GPU.

    Parameters
    ----------
    name
        A name of :func:`gpu_names`; case, spaces and underscores don't matter.
    where
        File and key the name was read from, for the message.

    Raises
    ------
    psdsim.errors.InputError
        If the name is unknown.

    Examples
    --------
    >>> gpu("l40s").bandwidth_bytes_per_s
    864000000000.0
    >>> gpu("H100-SMX")
    Traceback (most recent call last):
    ...
    psdsim.errors.InputError: unknown GPU 'H100-SMX'; did you mean 'H100-SXM'?; expected one of \
H100-SXM, H100-PCIe, H200-SXM, H20, A100-80G-SXM, A100-80G-PCIe, A100-40G, L4, L40, L40S, A10, \
A6000, RTX-4090, RTX-5090, RTX-PRO-6000, B200, MI300X
    """
    table = _table()
    by_key = {_key(known): known for known in table} | _ALIASES
    found = by_key.get(_key(name))
    if found is None:
        raise InputError(
            f"unknown GPU {name!r}{did_you_mean(name, table)}",
            expected="one of " + ", ".join(table),
            where=where,
        )
    return table[found]
