"""What a measurement was made on: hardware and versions, without names of people or hosts."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import torch


def hardware() -> dict[str, Any]:
    """Return processor, cores, memory and GPUs."""
    found: dict[str, Any] = {
        "cpu": _cpu_name(),
        "n_cores": os.cpu_count(),
        "machine": platform.machine(),
        "memory_bytes": _memory_bytes(),
    }
    if torch.cuda.is_available():
        found["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return found


def versions() -> dict[str, str]:
    """Return versions of Python, torch and what else decides the speed."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    for name in ("numpy", "psdsim"):
        found[name] = importlib.metadata.version(name)
    if torch.version.cuda is not None:
        found["cuda"] = torch.version.cuda
    return found


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
