"""Every run begins with a garbage collection, which need not look at what torch has made."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _nothing_old_to_collect() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
