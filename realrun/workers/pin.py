"""Devices by name, and threads pinned to cores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from psdsim.errors import InputError


@dataclass(frozen=True)
class DeviceName:
    """``cpu:1`` (core 1, one thread) or ``cuda:0``.

    Parameters
    ----------
    kind
        ``cpu`` or ``cuda``.
    index
        Core, as the system numbers them, or GPU.
    """

    kind: str
    index: int

    @classmethod
    def parse(cls, text: str, where: str = "--target-device") -> DeviceName:
        """Read a name and check that the machine has the device.

        Raises
        ------
        psdsim.errors.InputError
            If the name is malformed or there is no such core or GPU.
        """
        match = re.fullmatch(r"(cpu|cuda)(?::(\d{1,4}))?", text.strip())
        if match is None:
            raise InputError(f"device is '{text}'", expected="cpu:N or cuda:N", where=where)
        kind, index = match[1], int(match[2] or 0)
        if kind == "cpu":
            cores = available_cores()
            if index not in cores:
                raise InputError(
                    f"this process may not run on core {index}",
                    expected="one of " + ", ".join(f"cpu:{core}" for core in cores),
                    where=where,
                )
        elif index >= torch.cuda.device_count():
            there = torch.cuda.device_count()
            raise InputError(
                f"there is no GPU {index} ({there} found)",
                expected="a GPU that torch sees, or cpu:N",
                where=where,
            )
        return cls(kind, index)

    @property
    def torch(self) -> torch.device:
        """The torch device."""
        return torch.device("cpu") if self.kind == "cpu" else torch.device("cuda", self.index)

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


def available_cores() -> list[int]:
    """Return the cores this process may run on, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(os.getpid()))
    return list(range(os.cpu_count() or 1))


@contextmanager
def pinned(device: DeviceName) -> Iterator[None]:
    """Keep the calling thread on the core of a CPU device; elsewhere do nothing.

    Platforms without affinity calls (macOS) run unpinned.
    """
    if device.kind != "cpu" or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {device.index})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch use one thread in this process for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
