"""Trace readers: every layout on rows of our own, and every way they can be wrong."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from psdsim.errors import InputError
from psdsim.workload import Requests, TraceWorkload, generate
from psdsim.workload.traces import write_trace


def read(path, **options):
    return generate(TraceWorkload(path=str(path), **options), 0, 0)


def written(tmp_path, text, name="trace.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


AZURE_2023 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:00.0000000,100,10\r\n"
    "2023-11-16 18:15:01.2500001,200,20\r\n"
    "2023-11-16 18:16:00.0000000,300,30"
)
AZURE_2024 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2024-05-12 00:00:00.001000+00:00,10,3\n"
    "2024-05-12 00:00:01+00:00,20,4\n"
)
BURST = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,10,3,13,Conversation log\n7,GPT-4,20,0,20,Conversation log\n"
    "9,GPT-4,30,5,35,API log\n"
)
BURST_3 = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "19440110.5,,3.2,ChatGPT,10,3,13,API log\n19440112.0,abc,1.0,GPT-4,30,5,35,Conversation log\n"
)


def test_azure_2023_seven_digits_crlf_no_last_newline(tmp_path):
    r = read(written(tmp_path, AZURE_2023))
    np.testing.assert_allclose(r.arrival_s, [0.0, 1.2500001, 60.0], rtol=0, atol=1e-9)
    assert r.prompt_tokens.tolist() == [100, 200, 300]
    assert r.output_tokens.tolist() == [10, 20, 30]
    assert r.open_loop


def test_azure_2024_fraction_may_be_missing(tmp_path):
    r = read(written(tmp_path, AZURE_2024))
    np.testing.assert_allclose(r.arrival_s, [0.0, 0.999])


def test_burstgpt_failures_are_dropped_and_counted(tmp_path):
    r = read(written(tmp_path, BURST))
    assert r.arrival_s.tolist() == [0.0, 4.0]
    assert r.output_tokens.tolist() == [3, 5]
    assert r.notes == ("1 of 3 rows left out: failed requests with 0 tokens",)
    with pytest.raises(InputError, match=r"line 3: Response tokens is '0'"):
        read(written(tmp_path, BURST), drop_failures=False)


def test_burstgpt_3_is_read_by_name_not_by_place(tmp_path):
    r = read(written(tmp_path, BURST_3))
    assert r.prompt_tokens.tolist() == [10, 30]
    assert r.arrival_s.tolist() == [0.0, 1.5]


def test_vidur_with_and_without_arrivals(tmp_path):
    timed = written(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,3,4\n2.5,5,6\n")
    r = read(timed)
    assert r.arrival_s.tolist() == [0.0, 2.5]
    plain = written(tmp_path, "num_prefill_tokens,num_decode_tokens,pd_ratio\n3,4,0.7\n", "b.csv")
    r = read(plain)
    assert r.arrival_s.tolist() == [0.0]
    assert not r.open_loop
    assert "no arrival times" in r.notes[0]


def jsonl(tmp_path, *records, name="trace.jsonl"):
    return written(tmp_path, "\n".join(json.dumps(r) for r in records), name)


def mooncake(t, n, block):
    return {"timestamp": t, "input_length": n, "output_length": 5, "hash_ids": [0] * -(-n // block)}


def test_mooncake_ms_and_bailian_s_are_told_apart_by_block_size(tmp_path):
    a = read(jsonl(tmp_path, mooncake(0, 10, 512), mooncake(2500, 600, 512)))
    assert a.arrival_s.tolist() == [0.0, 2.5]
    b = read(jsonl(tmp_path, mooncake(0, 10, 16), mooncake(2500, 600, 16), name="b.jsonl"))
    assert b.arrival_s.tolist() == [0.0, 2500.0]
    assert "prefix caching is not modelled" in a.notes[0]


def test_timed_jsonl_needs_its_unit(tmp_path):
    path = jsonl(tmp_path, {"timestamp": 1000, "input_length": 4, "output_length": 5})
    with pytest.raises(InputError, match="unit of 'timestamp' is not known"):
        read(path)
    assert read(path, time_unit="ms").arrival_s.tolist() == [0.0]
    named = jsonl(
        tmp_path,
        {"timestamp_ms": 1000, "input_length": 4, "output_length": 5},
        {"timestamp_ms": 3500, "input_length": 4, "output_length": 5},
        name="n.jsonl",
    )
    assert read(named).arrival_s.tolist() == [0.0, 2.5]
    with pytest.raises(InputError, match="time_unit is s and the file has timestamp_ms"):
        read(named, time_unit="s")


def test_llmservingsim_nanoseconds(tmp_path):
    rows = [{"input_toks": 3, "output_toks": 4, "arrival_time_ns": t} for t in (5, 1_500_000_005)]
    assert read(jsonl(tmp_path, *rows)).arrival_s.tolist() == [0.0, 1.5]


def test_gzip(tmp_path):
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(AZURE_2023.encode()))
    assert len(read(path)) == 3


def test_unsorted_times_are_sorted_and_ties_keep_their_order(tmp_path):
    text = "arrived_at,num_prefill_tokens,num_decode_tokens\n5,1,1\n2,2,2\n5,3,3\n2,4,4\n"
    r = read(written(tmp_path, text))
    assert r.prompt_tokens.tolist() == [2, 4, 1, 3]
    assert "not sorted" in r.notes[0]


def test_head_and_rate_scale(tmp_path):
    path = written(tmp_path, AZURE_2023)
    assert len(read(path, n_requests=2)) == 2
    fast = read(path, rate_scale=2.0)
    np.testing.assert_allclose(fast.arrival_s, [0.0, 0.62500005, 30.0], atol=1e-9)
    with pytest.raises(InputError, match="the file has 3 requests and n_requests is 4"):
        read(path, n_requests=4)


def test_a_changed_file_is_read_again(tmp_path):
    import os

    path = written(tmp_path, AZURE_2024)
    assert len(read(path)) == 2
    path.write_text(AZURE_2023)
    os.utime(path, ns=(1, 1))
    assert len(read(path)) == 3


def test_write_and_read_back(tmp_path):
    r = Requests(np.array([0.0, 0.1, 1 / 3]), np.array([1, 2, 3]), np.array([4, 5, 6]))
    path = tmp_path / "out.jsonl"
    write_trace(r, path)
    again = read(path)
    np.testing.assert_array_equal(again.arrival_s, r.arrival_s)
    np.testing.assert_array_equal(again.output_tokens, r.output_tokens)


HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
DAY = "2023-11-16 18:15:00.0"


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "the file is empty"),
        (HEAD, "a header and no rows"),
        (HEAD + f"{DAY},100\n", r"line 2: has 2 fields \(is the file truncated\?\)"),
        (HEAD + f"{DAY},100,10\n{DAY},1e", "line 3: has 2 fields"),
        (HEAD + f"{DAY},abc,10\n", "line 2: ContextTokens is 'abc'; expected a number"),
        (HEAD + f"{DAY},100,0\n", "line 2: GeneratedTokens is '0'; expected a whole number"),
        (HEAD + f"{DAY},-5,10\n", "line 2: ContextTokens is '-5'"),
        (HEAD + f"{DAY},1.5,10\n", "line 2: ContextTokens is '1.5'"),
        (HEAD + "yesterday,1,10\n", "line 2: TIMESTAMP is 'yesterday'; expected a date"),
        (HEAD + f"{DAY},1,10\n17.5,1,10\n", "line 3: TIMESTAMP is '17.5'; expected a date"),
        (
            HEAD + f"{DAY},1,10\n{DAY}+00:00,1,10\n",
            "line 3: TIMESTAMP .* dates before it have no time zone",
        ),
        ("TIMESTAMP,Contexttokens,GeneratedTokens\n" + f"{DAY},1,10\n", "did you mean"),
        ("a,b\n1,2\n", "the columns a, b are those of no known trace"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, text))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "the file is empty"),
        ('{"timestamp_s": 1, "input_length": 2', r"line 1: is not JSON \(is the file truncated"),
        ("[1, 2]", "line 1: is a list; expected a JSON object"),
        (
            '{"timestamp_s": 1, "input_length": 2, "output_length": 3}\n{"timestamp_s": 1}',
            "line 2: the key 'input_length' is missing",
        ),
        (
            '{"timestamp_s": 1, "input_length": 2, "output_length": 0}',
            "line 1: output_length is 0; expected a whole number of at least 1",
        ),
        (
            '{"timestamp_s": NaN, "input_length": 2, "output_length": 3}',
            "line 1: timestamp_s is nan; expected a number",
        ),
    ],
)
def test_bad_jsonl(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, text, "trace.jsonl"))


def test_other_files(tmp_path):
    with pytest.raises(InputError, match="can't be read: No such file"):
        read(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"has the ending '.txt'"):
        read(written(tmp_path, AZURE_2023, "trace.txt"))
    bad = tmp_path / "bad.csv.gz"
    bad.write_bytes(b"not gzip")
    with pytest.raises(InputError, match=r"bad.csv.gz: can't be unpacked: Not a gzipped file"):
        read(bad)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(InputError, match="can't be read"):
        read(binary)
