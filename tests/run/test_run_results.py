"""One run: tables, timeline, records, replay, planning."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from psdsim import InputError, Scenario, Targets, breaking_rate, simulate, sweep_rates
from psdsim.records.jsonl import read_lines, to_lines
from psdsim.run.plan import at_rate
from psdsim.run.saturation import is_saturated

SMALL = {"workload.n_requests": 24, "workload.output_tokens": 40, "engine.max_num_seqs": 4}
POISSON = {
    "workload": {
        "kind": "poisson", "rate": 2.0, "n_requests": 150, "prompt_tokens": 64,
        "output_tokens": 64,
    },
    "engine.max_num_seqs": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def scenario():
    return Scenario.builtin(SMALL)


@pytest.fixture(scope="module")
def result(scenario):
    return simulate(scenario, "minedraft", 3, timeline=True)


def test_tables_agree_with_each_other(result):
    requests, steps = result.requests, result.steps
    assert steps["n_emitted_tokens"].sum() == requests["output_tokens"].sum()
    assert set(steps["kind"]) == {"prefill", "draft", "decode"}
    # TPOT by its definition, from the request table alone.
    e2el = requests["finish_s"] - requests["arrival_s"]
    ttft = requests["first_token_s"] - requests["arrival_s"]
    tpot = (e2el - ttft) / (requests["output_tokens"] - 1)
    assert result.metrics["p99_tpot_ms"] == pytest.approx(np.quantile(tpot, 0.99) * 1e3)
    assert result.summary()["mean_ttft_ms"] == pytest.approx(ttft.mean() * 1e3)


def test_itl_is_one_sample_a_chunk(result):
    gaps, weights = result.raw.gaps.values()
    # One gap for each decode step that a request was verified in.
    assert weights.sum() == result.steps["n_verify_seqs"].sum()
    r = result.requests
    decoding = (r["finish_s"] - r["first_token_s"]).sum()
    assert (gaps * weights).sum() == pytest.approx(decoding)


def test_spans_fill_what_the_steps_say(result):
    spans = result.spans
    busy = sum(s.end_s - s.start_s for s in spans if s.device == "target" and s.kind == "verify")
    decode = result.steps[result.steps["kind"] != "prefill"]
    assert busy == pytest.approx(decode["verify_time_s"].sum())
    for device in ("target", "draft"):
        own = sorted((s.start_s, s.end_s) for s in spans if s.device == device)
        assert all(a[1] <= b[0] + 1e-12 for a, b in pairwise(own))


def test_perfetto_trace(result, tmp_path):
    path = tmp_path / "trace.json"
    trace = json.loads(result.to_perfetto(path))
    assert json.loads(path.read_text()) == trace
    names = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {"target", "draft", "target group 0", "target group 1", "draft group 0"} <= names
    kinds = {e["name"] for e in trace["traceEvents"] if e["ph"] == "X"}
    assert kinds == {"prefill", "draft", "verify", "sync", "overhead", "idle"}
    assert all(e["dur"] > 0 for e in trace["traceEvents"] if e["ph"] == "X")


def test_timeline_picture(result):
    figure = result.timeline(n_steps=6)
    axes = figure.axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[:3] == ["target", "target, sub-batch 0", "target, sub-batch 1"]
    assert "ms" in axes.get_xlabel()


def test_no_timeline_without_asking(scenario):
    with pytest.raises(InputError, match="kept no timeline"):
        simulate(scenario, "sd", 2).timeline()


def test_jsonl_round_trip(result, tmp_path):
    path = tmp_path / "run.jsonl"
    lines = list(to_lines({"k": 3}, result.raw.steps, result.raw.requests))
    path.write_text("\n".join(lines))
    metadata, steps, requests = read_lines(path)
    assert metadata == {"k": 3}
    for name, column in result.raw.steps.items():
        np.testing.assert_array_equal(steps[name], column)
    for name, column in result.raw.requests.items():
        np.testing.assert_array_equal(requests[name], column)
    step = json.loads(lines[3])
    assert {"start_us", "end_us", "is_parallelised", "proposed_len", "accepted_num"} <= set(step)


def test_jsonl_names_the_bad_line(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"metadata": {}}\n{"type": "Step"}\n')
    with pytest.raises(InputError, match=r"line 2: the key 'replica' is missing"):
        read_lines(path)


def test_parquet_holds_what_memory_would(scenario, tmp_path):
    import pandas as pd

    path = tmp_path / "steps.parquet"
    kept = simulate(scenario, "sd", 3)
    streamed = simulate(scenario, "sd", 3, steps_parquet=path)
    assert streamed.raw.steps["kind"].size == 0
    table = pd.read_parquet(path)
    for name, column in kept.raw.steps.items():
        np.testing.assert_array_equal(table[name].to_numpy(), column)
    assert streamed.raw.tally == kept.raw.tally


@pytest.mark.parametrize(
    "recorded, schedule",
    [("sd", "sd"), ("sd", "minedraft"), ("pearl", "pearl"), ("pearl", "pearl-draft-ahead")],
)
def test_replay_of_a_run_has_its_step_counts(scenario, recorded, schedule):
    """Record accepted lengths from steps of single requests, replay them: same counts."""
    k, n = 3, 12
    one = scenario.set({"workload.n_requests": n, "engine.max_num_seqs": 1})
    run = simulate(one, recorded, k, seed=5)
    decode = run.steps[run.steps["kind"] == "decode"]
    # Batch 1: every decode step is one request's round, request after request.
    rounds, accepted = run.requests["n_rounds"], decode["n_accepted_tokens"].tolist()
    ends = np.cumsum(rounds)
    recording = [accepted[e - r : e] for e, r in zip(ends, rounds, strict=True)]
    acceptance = {"kind": "replay", "k": k, "rounds": recording, "bonus": recorded == "sd"}
    replay = one.set({"acceptance": acceptance, "engine.max_num_seqs": 4})
    again = simulate(replay, schedule, k)
    np.testing.assert_array_equal(again.requests["n_rounds"], rounds)
    np.testing.assert_array_equal(
        again.requests["n_accepted_tokens"], run.requests["n_accepted_tokens"]
    )


def test_replay_is_bound_to_its_k_and_schedule(scenario):
    replay = scenario.set({"acceptance": {"kind": "replay", "k": 3, "rounds": [[1] * 40]}})
    with pytest.raises(InputError, match="k=3 and k=2"):
        simulate(replay, "sd", 2)
    with pytest.raises(InputError, match="expected schedule sd or mine"):
        simulate(replay, "pearl", 3)
    pearl = replay.set({"acceptance.bonus": False})
    with pytest.raises(InputError, match="can't be replayed here; expected schedule pearl or"):
        simulate(pearl, "sd", 3)
    # The first pass of a request tests one draft.
    wrong = pearl.set({"acceptance.rounds": [[2] * 40]})
    with pytest.raises(InputError, match=r"request 0 has 2 .* for round 0, which tests 1 here"):
        simulate(wrong, "pearl", 3)
    short = scenario.set({"acceptance": {"kind": "replay", "k": 3, "rounds": [[1, 1]]}})
    with pytest.raises(InputError, match="needs more rounds than the 2 recorded"):
        simulate(short, "sd", 3)


def test_kv_pool_follows_from_memory():
    sd = simulate(Scenario.builtin(SMALL | {"engine.max_num_seqs": 2}), "sd", 2)
    assert sd.raw.tally.n_preemptions == 0
    tight = Scenario.builtin(SMALL | {"engine.kv_blocks": 50})
    assert simulate(tight, "minedraft", 2).raw.tally.n_preemptions > 0


def test_rate_is_replaced_in_every_kind(tmp_path):
    batch = Scenario.builtin(SMALL)
    assert at_rate(batch, 3.0).workload.kind == "poisson"
    assert at_rate(Scenario.builtin(POISSON), 3.0).workload.rate == 3.0
    trace = tmp_path / "t.jsonl"
    trace.write_text(
        "".join(
            f'{{"timestamp_s": {i}, "input_length": 5, "output_length": 5}}\n' for i in range(9)
        )
    )
    traced = Scenario.builtin({"workload": {"kind": "trace", "path": str(trace)}})
    assert at_rate(traced, 4.0).workload.rate_scale == 4.0


def test_latency_rises_with_load_and_breaks_where_the_sweep_says():
    scenario = Scenario.builtin(POISSON)
    frame = sweep_rates(scenario, [("sd", 3)], [1.0, 4.0, 16.0, 64.0], n_replications=2)
    assert frame["p99_ttft_ms"].is_monotonic_increasing
    limit = float(np.sqrt(frame["p99_ttft_ms"].iloc[1] * frame["p99_ttft_ms"].iloc[2]))
    rate = breaking_rate(scenario, "sd", 3, Targets(p99_ttft_ms=limit))
    assert 4.0 * 0.7 < rate < 16.0 * 1.3
    assert breaking_rate(scenario, "sd", 3, Targets(p99_ttft_ms=1e-3)) == 0.0


def test_targets_are_checked():
    with pytest.raises(InputError, match="no latency target"):
        Targets()
    with pytest.raises(InputError, match="p99_ttft_ms is -1"):
        Targets(p99_ttft_ms=-1)


def test_saturation():
    busy = Scenario.builtin(
        POISSON | {"workload": POISSON["workload"] | {"rate": 200.0, "n_requests": 400}}
    )
    calm = Scenario.builtin(POISSON)
    assert is_saturated(simulate(busy, "ar").raw.requests)
    assert simulate(busy, "ar").metrics["saturated"] is True
    assert not is_saturated(simulate(calm, "ar").raw.requests)
    batch = Scenario.builtin(SMALL)
    assert simulate(batch, "ar").metrics["saturated"] is False
