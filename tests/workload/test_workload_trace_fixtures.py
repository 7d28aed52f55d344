"""One small file of made-up rows for each layout; what they mean is worked out here by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from psdsim.workload import TraceWorkload, generate

DATA = Path(__file__).parent / "data"

EXPECTED = {
    # 09:59:58.125 is the start; 1.5000001 s and 62 s later. Seven digits, CRLF, no last newline.
    "azure_2023.csv": (
        [0.0, 1.5000001, 1.5000001, 62.0], [310, 95, 1204, 77], [25, 7, 130, 41], None
    ),
    # Whole seconds have no fraction, and midnight lies between the first two rows.
    "azure_2024.csv": ([0.0, 0.5, 0.75], [640, 51, 2048], [12, 3, 88], None),
    "azure_2024.csv.gz": ([0.0, 0.5, 0.75], [640, 51, 2048], [12, 3, 88], None),
    "azure_2025.csv": ([0.0, 3.5], [900, 33], [14, 210], "images"),
    # The first row failed, so the second one is the start.
    "burstgpt_1.csv": ([0.0, 6.0, 15.0], [220, 18, 64], [45, 301, 2], "2 of 5 rows left out"),
    "burstgpt_3.csv": ([0.0, 3.25], [512, 41], [33, 19], "1 of 3 rows left out"),
    "vidur_timed.csv": ([0.0, 0.375, 2.5], [120, 8, 700], [16, 9, 55], None),
    "vidur_untimed.csv": ([0.0, 0.0], [90, 44], [30, 11], "no arrival times"),
    "mooncake.jsonl": ([0.0, 0.0, 1.5], [600, 12, 1025], [21, 4, 60], "prefix caching"),
    "bailian.jsonl": ([0.0, 2.5], [20, 33], [7, 9], "prefix caching"),
    "timed_s.jsonl": ([0.0, 0.75], [10, 11], [20, 21], None),
    "timed_bare.jsonl": ([0.0, 1.5], [10, 11], [20, 21], None),
    "llmservingsim.jsonl": ([0.0, 0.0625], [7, 9], [8, 6], None),
}  # fmt: skip
FORMAT = {
    "azure_2023.csv": "azure", "azure_2024.csv": "azure", "azure_2024.csv.gz": "azure",
    "azure_2025.csv": "azure", "burstgpt_1.csv": "burstgpt", "burstgpt_3.csv": "burstgpt",
    "vidur_timed.csv": "vidur", "vidur_untimed.csv": "vidur", "mooncake.jsonl": "mooncake",
    "bailian.jsonl": "bailian", "timed_s.jsonl": "timed_jsonl", "timed_bare.jsonl": "timed_jsonl",
    "llmservingsim.jsonl": "llmservingsim",
}  # fmt: skip
UNIT = {"timed_bare.jsonl": "us"}


def read(name, **options):
    return generate(TraceWorkload(path=name, time_unit=UNIT.get(name), **options), 3, 1, DATA)


@pytest.mark.parametrize("stated", [False, True])
@pytest.mark.parametrize("name", EXPECTED)
def test_layout(name, stated):
    arrival, prompts, outputs, note = EXPECTED[name]
    r = read(name, format=FORMAT[name] if stated else "auto")
    np.testing.assert_allclose(r.arrival_s, arrival, rtol=0, atol=1e-9)
    assert r.arrival_s[0] == 0.0
    assert r.prompt_tokens.tolist() == prompts
    assert r.output_tokens.tolist() == outputs
    assert r.open_loop == (arrival[-1] > 0)
    assert r.concurrency is None
    if note is None:
        assert r.notes == ()
    else:
        assert len(r.notes) == 1
        assert note in r.notes[0]


def test_every_file_and_every_layout_is_tested():
    assert {path.name for path in DATA.iterdir()} == set(EXPECTED) == set(FORMAT)
    stated = set(TraceWorkload.model_json_schema()["properties"]["format"]["enum"])
    assert set(FORMAT.values()) == stated - {"auto"}


def test_a_wrong_layout_is_refused_by_column_name():
    with pytest.raises(ValueError, match=r"azure_2023.csv: line 1: the column 'Timestamp'"):
        read("azure_2023.csv", format="burstgpt")
    with pytest.raises(ValueError, match=r"mooncake.jsonl: line 1: the column 'num_prefill"):
        read("mooncake.jsonl", format="vidur")
