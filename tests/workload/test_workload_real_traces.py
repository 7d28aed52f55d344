"""Cuts of the public traces, against the same numbers taken from the text by other means."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from psdsim.workload import TraceWorkload, generate

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "traces"


def read(path, **options):
    return generate(TraceWorkload(path=str(path), **options), 0, 0)


def shared(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not here (real traces are not part of the project)")
    return path


@pytest.mark.parametrize("name", ["azure_2023_conv_head1000.csv", "azure_2023_code_head1000.csv"])
def test_real_azure(name):
    path = shared(name)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    r = read(path)
    assert len(r) == len(rows) == 1000
    assert r.prompt_tokens.sum() == sum(int(row["ContextTokens"]) for row in rows)
    assert r.output_tokens.sum() == sum(int(row["GeneratedTokens"]) for row in rows)
    # Seconds of the same minute, by hand from the text.
    first, second = (float(row["TIMESTAMP"].split(":")[2]) for row in rows[:2])
    assert r.arrival_s[1] == pytest.approx(second - first, abs=1e-7)


@pytest.mark.parametrize(
    "name, n, span_s",
    [
        ("azure_2024_conv_rows_from_notebook.csv", 5, None),
        ("azure_2025_multimodal_rows_from_notebook.csv", 5, None),
        ("burstgpt_1_first_rows.csv", 3, 113.0),
        ("mooncake_conversation_head200.jsonl", 200, 72.0),
        ("vidur_arxiv_summarization_head200.csv", 200, 0.0),
        ("vidur_splitwise_conv_head300.csv", 300, None),
    ],
)
def test_real_others(name, n, span_s):
    r = read(shared(name))
    assert len(r) == n
    assert r.arrival_s[0] == 0.0
    if span_s is not None:
        assert r.arrival_s[-1] == span_s


def test_real_azure_last_row():
    path = shared("azure_2023_conv_head1000.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))

    def second_of_day(row):
        hours, minutes, seconds = row["TIMESTAMP"].split(" ")[1].split(":")
        return 3600 * int(hours) + 60 * int(minutes) + float(seconds)

    r = read(path)
    span = second_of_day(rows[-1]) - second_of_day(rows[0])
    assert r.arrival_s[-1] == pytest.approx(span, abs=1e-6)
    for row, i in ((rows[0], 0), (rows[-1], -1)):
        assert r.prompt_tokens[i] == int(row["ContextTokens"])
        assert r.output_tokens[i] == int(row["GeneratedTokens"])


def test_real_mooncake_all_rows():
    path = shared("mooncake_conversation_head200.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    r = read(path)
    np.testing.assert_allclose(r.arrival_s, [row["timestamp"] / 1000 for row in rows], rtol=1e-15)
    assert r.prompt_tokens.tolist() == [row["input_length"] for row in rows]
    assert r.output_tokens.tolist() == [row["output_length"] for row in rows]


def test_vidur_is_azure_rebased():
    vidur = read(shared("vidur_splitwise_conv_head300.csv"))
    azure = read(shared("azure_2023_conv_head1000.csv"), n_requests=300)
    np.testing.assert_allclose(vidur.arrival_s, azure.arrival_s, atol=1e-5)
    np.testing.assert_array_equal(vidur.prompt_tokens, azure.prompt_tokens)
