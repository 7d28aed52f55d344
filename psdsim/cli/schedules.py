"""`psdsim schedules`: what can be compared, and the built-in models and GPUs."""

from __future__ import annotations

from typing import Annotated

import typer


def schedules_command(
    models: Annotated[bool, typer.Option("--models", help="List built-in models.")] = False,
    gpus: Annotated[bool, typer.Option("--gpus", help="List GPU data sheets.")] = False,
) -> None:
    """List schedules, built-in models or GPUs."""
    from psdsim.cli.tables import aligned, number
    from psdsim.schedules import SCHEDULES

    if models:
        from psdsim.hardware import model_names, model_shape

        shapes = {name: model_shape(name) for name in model_names()}
        rows = [
            [name, number(s.n_params / 1e9), number(s.n_active_params / 1e9),
             number(s.kv_bytes_per_token() / 1024)]
            for name, s in shapes.items()
        ]  # fmt: skip
        typer.echo(aligned(["model", "10^9 parameters", "active", "KV KiB/token"], rows))
    if gpus:
        from psdsim.hardware import gpu, gpu_names

        sheets = [gpu(name) for name in gpu_names()]
        rows = [
            [g.name, number(g.memory_bytes / 2**30, 3), number(g.bandwidth_bytes_per_s / 1e12),
             number(g.bf16_flops / 1e12)]
            for g in sheets
        ]  # fmt: skip
        typer.echo(aligned(["GPU", "memory GiB", "bandwidth TB/s", "bf16 TFLOP/s"], rows))
    if models or gpus:
        return
    for name, cls in SCHEDULES.items():
        devices = "draft and target at the same time" if cls.overlaps else "one thing at a time"
        typer.echo(f"{name}\n    {cls.summary}\n    {devices}; source: {cls.source}")
