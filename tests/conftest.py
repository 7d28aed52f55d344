"""Settings that every test runs under."""

from __future__ import annotations

import os

from hypothesis import settings

# A figure drawn in a test must not look for a display.
os.environ.setdefault("MPLBACKEND", "Agg")

# No deadline: wall time is measured in benchmarks, never asserted in tests. The same examples on
# every run: a failure found by chance belongs in `pytest --hypothesis-profile explore`.
settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("fixed")
