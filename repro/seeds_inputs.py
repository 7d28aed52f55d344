"""Published figures of the systems around MineDraft: `data/seeds.yaml`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from repro.claims import Claim, missing


@cache
def published() -> dict[str, Any]:
    """Return `data/seeds.yaml`."""
    path = Path(__file__).parent / "data" / "seeds.yaml"
    data: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return data


def not_computed(name: str) -> list[Claim]:
    """Return a system's figures that lack an input."""
    return [
        missing(name, row["id"], row["text"], source=row["source"], evidence=row["evidence"],
                reason=row["reason"])
        for row in published()[name].get("not_computed", ())
    ]  # fmt: skip
