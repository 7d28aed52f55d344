"""What can be wrong with a trace beyond one bad cell, and what reading it must not do."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psdsim.errors import InputError
from psdsim.workload import ConcurrencyWorkload, PoissonWorkload, Requests, TraceWorkload, generate
from psdsim.workload.traces import read as reading
from psdsim.workload.traces import read_trace, write_trace

VIDUR = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
TIMED = '{"timestamp_s": %s, "input_length": %s, "output_length": %s}\n'


def written(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, **options):
    return read_trace(TraceWorkload(path=str(path), **options))


CASES = [
    ("t.csv", VIDUR + "-1,2,3\n", "line 2: arrived_at is '-1'; expected a time of at least 0"),
    ("t.csv", VIDUR + "1,1e300,3\n", "line 2: num_prefill_tokens is '1e300'"),
    ("t.csv", VIDUR + "1,2,1000000001\n", "line 2: num_decode_tokens is '1000000001'"),
    ("t.csv", VIDUR + "1,1_000,3\n", "line 2: num_prefill_tokens is '1_000'; expected a number"),
    ("t.csv", VIDUR + "1,,3\n", "line 2: num_prefill_tokens is ''; expected a number"),
    ("t.csv", VIDUR + "nan,2,3\n", "line 2: arrived_at is 'nan'"),
    ("t.csv", VIDUR + "\n1,2,3\n\n\n1,2,x\n", "line 6: num_decode_tokens is 'x'"),
    ("t.csv", "\n\n" + VIDUR + "1,2,3\n1,2,0\n", "line 5: num_decode_tokens is '0'"),
    ("t.csv", VIDUR + "1,2,3,4\n", "line 2: has 4 fields .*; expected 3 as in the header"),
    ("t.csv", VIDUR + "1,2,3\n1,2\n", "line 3: has 2 fields"),
    ("t.csv", "arrived_at," + VIDUR + "1,1,2,3\n", "'arrived_at' is there 2 times"),
    ("t.csv", VIDUR.replace(",", ";") + "1;2;3\n", "are those of no known trace"),
    ("t.csv", "time,Context Tokens,Generated Tokens\n1,2,3\n", "did you mean 'GeneratedTokens'"),
    ("t.csv", (VIDUR + "1,2,3\n").encode("utf-16"), "first line is not UTF-8"),
    ("t.csv", VIDUR.encode() + b"1,2,\xff\n", "can't be read: .*UTF8"),
    ("t.csv", AZURE + "9999-01-01 00:00:00,1,1\n", "line 2: TIMESTAMP is '9999-01-01"),
    ("t.csv", AZURE + "2024-02-30 00:00:00,1,1\n", "line 2: TIMESTAMP is '2024-02-30"),
    ("t.csv", AZURE + "2024,1,1\n", "line 2: TIMESTAMP is '2024'; expected a date"),
    (
        "t.csv",
        AZURE + "2024-05-12 00:00:01+00,1,1\n2024-05-12 00:00:03,1,1\n",
        "line 3: TIMESTAMP is .* dates before it have a time zone; expected all",
    ),
    ("t.csv", BURST + "1,a,3,0,3,x\n2,a,0,5,5,x\n", "all requests have failed"),
    ("t.csv", BURST + "1,a,3,-4,3,x\n", "line 2: Response tokens is '-4'"),
    ("t.jsonl", TIMED % (1, "true", 3), "line 1: input_length is True; expected a number"),
    ("t.jsonl", TIMED % (1, '"7"', 3), "line 1: input_length is '7'; expected a number"),
    ("t.jsonl", TIMED % (1, "null", 3), "line 1: input_length is None; expected a number"),
    ("t.jsonl", TIMED % (1, "[2]", 3), r"line 1: input_length is \[2\]; expected a number"),
    ("t.jsonl", TIMED % (1, 2.5, 3), "line 1: input_length is 2.5; expected a whole number"),
    ("t.jsonl", TIMED % ("Infinity", 2, 3), "line 1: timestamp_s is inf; expected a number"),
    ("t.jsonl", TIMED % ("9" * 400, 2, 3), r"line 1: timestamp_s is 9{57}\.\.\.; expected"),
    ("t.jsonl", TIMED % ("9" * 5000, 2, 3), "line 1: can't be read"),
    ("t.jsonl", "\n" + TIMED % (1, 2, 3) + "\n" + TIMED % (-1, 2, 3), "line 4: timestamp_s is -1"),
    ("t.jsonl", "[" * 200_000, "line 1: (can't be read|is not JSON)"),
    ("t.jsonl", b'{"timestamp_s": 1, "\xff": 2}', "line 1: can't be read"),
    ("t.jsonl", '"text"', "line 1: is a str; expected a JSON object"),
    ("t.csv.gz", b"", "the file is empty"),
    (
        "t.csv.gz",
        gzip.compress((VIDUR + "1,2,3\n" * 900).encode(), mtime=0)[:60],
        "can't be unpacked",
    ),
]


@pytest.mark.parametrize("name, content, message", CASES)
def test_refused(tmp_path, name, content, message):
    path = written(tmp_path, content, name)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))


def test_corrupt_gzip(tmp_path):
    packed = bytearray(gzip.compress((VIDUR + "1,2,3\n" * 900).encode(), mtime=0))
    packed[30] ^= 0xFF
    with pytest.raises(InputError, match="can't be unpacked"):
        read(written(tmp_path, bytes(packed), "t.csv.gz"))


def test_places_that_are_no_file(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"folder\.csv: can't be read: Is a directory"):
        read(tmp_path / "folder.csv")
    with pytest.raises(InputError, match="can't be read: embedded null byte"):
        read("a\0b.csv")


def test_columns_nobody_reads_may_hold_anything(tmp_path):
    text = BURST.encode() + b"1,\xe9\xff,3,4,?,\n2,,5,6,,x\n"
    assert read(written(tmp_path, text, "t.csv")).prompt_tokens.tolist() == [3, 5]
    lines = '{"timestamp_s": 1, "input_length": 2, "output_length": 3, "text": "a"}\n' + TIMED % (
        2, 4, 5
    )  # fmt: skip
    assert read(written(tmp_path, lines, "t.jsonl")).prompt_tokens.tolist() == [2, 4]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_byte_order_mark_spaces_quotes_and_line_ends(tmp_path, mark, end):
    text = mark + ' arrived_at , num_prefill_tokens,"num_decode_tokens"\n 1 ," 2",3\n'
    path = written(tmp_path, text.replace("\n", end), "t.csv")
    for n_requests in (None, 1):
        r = read(path, n_requests=n_requests)
        assert (r.prompt_tokens.tolist(), r.output_tokens.tolist()) == ([2], [3])
        assert r.notes == ()  # in particular not: no arrival times
    lines = mark + TIMED % (1, 2, 3)
    assert len(read(written(tmp_path, lines.replace("\n", end), "t.jsonl"))) == 1


def test_dates_of_several_offsets_are_moments(tmp_path):
    # 01:00 at +01:00 is 00:00 UTC; the last one is 1.5 s later.
    rows = ["2024-05-12 01:00:00+01:00", "2024-05-12T00:00:01Z", "2024-05-11 19:00:01.5-0500"]
    text = AZURE + "".join(f"{row},1,1\n" for row in rows)
    np.testing.assert_allclose(read(written(tmp_path, text, "t.csv")).arrival_s, [0, 1, 1.5])


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_nothing_below_the_head_is_looked_at(tmp_path, name):
    csv_file = name == "t.csv"
    good = (
        VIDUR + "\n0,2,3\n\n1,2,3\n" if csv_file else TIMED % (0, 2, 3) + "\n" + TIMED % (1, 2, 3)
    )
    path = written(tmp_path, good + "rubbish\n", name)
    assert read(path, n_requests=2).arrival_s.tolist() == [0.0, 1.0]
    with pytest.raises(InputError, match="line 6: has 1 fields" if csv_file else "line 4: is not"):
        read(path)


def test_the_head_counts_requests_that_did_not_fail(tmp_path):
    # Failures at 0, 1, 3, 4, 5; served at 2, 6, 7.
    answers = [0, 0, 9, 0, 0, 0, 8, 7]
    text = BURST + "".join(f"{t},m,5,{a},0,x\n" for t, a in enumerate(answers))
    path = written(tmp_path, text, "t.csv")
    for n, times, note in [
        (1, [0.0], "2 of 3 rows left out"),
        (2, [0.0, 4.0], "5 of 7 rows left out"),
        (3, [0.0, 4.0, 5.0], "5 of 8 rows left out"),
        (None, [0.0, 4.0, 5.0], "5 of 8 rows left out"),
    ]:
        r = read(path, n_requests=n)
        assert r.arrival_s.tolist() == times
        assert note in r.notes[0]
    with pytest.raises(InputError, match="the file has 3 requests and n_requests is 4"):
        read(path, n_requests=4)


def test_the_size_of_hash_blocks_may_not_tell(tmp_path):
    line = '{"timestamp": %d, "input_length": %d, "output_length": 1, "hash_ids": %s}\n'
    short = written(tmp_path, line % (0, 9, [1]), "short.jsonl")
    other = written(tmp_path, line % (0, 640, [1, 2, 3]), "other.jsonl")
    for path in (short, other):
        with pytest.raises(InputError, match=r"expected format: mooncake .* or bailian"):
            read(path)
    assert read(short, format="bailian").prompt_tokens.tolist() == [9]
    # 512 tokens are 1 block of Mooncake's and 32 of Bailian's.
    exact = written(tmp_path, line % (7, 512, [1]) + line % (9, 512, [1]), "exact.jsonl")
    assert read(exact).arrival_s[-1] == 0.002
    # 16 tokens are 1 block of both, 600 are 2 or 38.
    longer = line % (0, 16, [1]) + line % (2, 600, list(range(38)))
    assert read(written(tmp_path, longer, "longer.jsonl")).arrival_s[-1] == 2.0


def test_options_without_effect_are_refused(tmp_path):
    untimed = written(tmp_path, "num_prefill_tokens,num_decode_tokens\n1,2\n3,4\n", "u.csv")
    with pytest.raises(InputError, match="rate_scale has no effect"):
        read(untimed, rate_scale=2.0)
    timed = written(tmp_path, VIDUR + "0,1,2\n8,1,2\n", "t.csv")
    with pytest.raises(InputError, match="drop_failures has no effect: the layout vidur"):
        read(timed, drop_failures=False)
    with pytest.raises(InputError, match="time_unit has no effect: the layout vidur"):
        read(timed, time_unit="ms")
    with pytest.raises(InputError, match="rate_scale 1e-308 puts the last arrival at inf s"):
        read(timed, rate_scale=1e-308)
    for bad in ({"format": "azure", "time_unit": "s"}, {"format": "vidur", "drop_failures": False}):
        with pytest.raises(ValueError, match="has no effect"):
            TraceWorkload(path="t.csv", **bad)


def test_a_file_is_parsed_once_until_it_changes(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        reading, "read_csv", lambda *a, real=reading.read_csv: calls.append(a) or real(*a)
    )
    path = written(tmp_path, VIDUR + "0,1,2\n8,1,2\n", "t.csv")
    for scale in (1.0, 2.0, 4.0, 2.0):
        assert read(path, rate_scale=scale).arrival_s[-1] == 8.0 / scale
    assert len(calls) == 1
    path.write_text(VIDUR + "0,1,2\n8,1,2\n9,1,2\n")
    before = path.stat()
    assert len(read(path)) == 3
    # Same size, later time.
    path.write_text(VIDUR + "0,1,2\n8,1,2\n7,1,2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert read(path).arrival_s[-1] == 8.0
    # Same time, other size.
    changed = path.stat()
    path.write_text(VIDUR + "0,1,2\n88,1,2\n7,1,2\n")
    os.utime(path, ns=(changed.st_atime_ns, changed.st_mtime_ns))
    assert read(path).arrival_s[-1] == 88.0
    assert len(calls) == 4


def test_a_relative_path_means_another_file_in_another_folder(tmp_path, monkeypatch):
    for n, folder in enumerate(("a", "b"), 1):
        (tmp_path / folder).mkdir()
        path = written(tmp_path / folder, VIDUR + f"0,{n},2\n", "t.csv")
        os.utime(path, ns=(5, 5))
        monkeypatch.chdir(tmp_path / folder)
        assert read("t.csv").prompt_tokens.tolist() == [n]
    work = TraceWorkload(path="t.csv")
    assert generate(work, 0, 0, tmp_path / "a").prompt_tokens.tolist() == [1]


def test_what_is_returned_cannot_spoil_the_next_reading(tmp_path):
    path = written(tmp_path, VIDUR + "0,1,2\n8,1,2\n", "t.csv")
    with pytest.raises(ValueError, match="read-only"):
        read(path).arrival_s[0] = 3.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e9, allow_subnormal=False),
            st.integers(1, 10**9),
            st.integers(1, 10**9),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_any_trace_comes_back_sorted_and_complete(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    path.write_text("".join(TIMED % (json.dumps(t), p, o) for t, p, o in rows))
    r = read(path)
    # Python's sort is stable as well.
    expected = sorted(rows, key=lambda row: row[0])
    first = expected[0][0]
    assert r.arrival_s.tolist() == [t - first for t, _, _ in expected]
    assert r.prompt_tokens.tolist() == [p for _, p, _ in expected]
    assert r.output_tokens.tolist() == [o for _, _, o in expected]
    again = path.with_name("again.jsonl")
    write_trace(r, again)
    back = read(again)
    for name in ("arrival_s", "prompt_tokens", "output_tokens"):
        np.testing.assert_array_equal(getattr(back, name), getattr(r, name))


def test_what_is_written(tmp_path):
    path = tmp_path / "t.jsonl"
    write_trace(Requests(np.array([0.5, 1e-7 + 1]), np.array([3, 4]), np.array([5, 6])), path)
    assert path.read_bytes() == (
        b'{"timestamp_s": 0.5, "input_length": 3, "output_length": 5}\n'
        b'{"timestamp_s": 1.0000001, "input_length": 4, "output_length": 6}\n'
    )
    assert read(path).arrival_s.tolist() == pytest.approx([0.0, 0.5000001], abs=1e-12)


def test_what_is_not_written(tmp_path):
    poisson = PoissonWorkload(rate=1.0, n_requests=4, prompt_tokens=4, output_tokens=4)
    closed = ConcurrencyWorkload(concurrency=2, n_requests=4, prompt_tokens=4, output_tokens=4)
    requests = generate(poisson, 0, 0)
    with pytest.raises(InputError, match="closed loop has no arrival times"):
        write_trace(generate(closed, 0, 0), tmp_path / "t.jsonl")
    with pytest.raises(InputError, match=r"t.csv: has the ending '.csv'"):
        write_trace(requests, tmp_path / "t.csv")
    with pytest.raises(InputError, match="can't be written: No such file"):
        write_trace(requests, tmp_path / "none" / "t.jsonl")
    (tmp_path / "taken.jsonl").mkdir()
    with pytest.raises(InputError, match="can't be written"):
        write_trace(requests, tmp_path / "taken.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.jsonl"]


def test_synthetic_workloads_do_not_load_the_readers():
    code = (
        "import sys, psdsim.workload; "
        "print(sorted({'pandas', 'pyarrow', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
