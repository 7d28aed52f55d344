"""Scenarios that can't be: one sentence with the key, what was found, what is expected."""

from __future__ import annotations

import re

import pytest

from psdsim import InputError, Scenario
from psdsim.scenario import parse_assignments

CONSTANT = {"kind": "constant", "time_s": 0.01}
BATCH = {"kind": "batch", "n_requests": 4, "prompt_tokens": 8, "output_tokens": 8}


def refusal(overrides):
    with pytest.raises(InputError) as error:
        Scenario.builtin(overrides)
    text = str(error.value)
    assert "\n" not in text
    assert text.startswith("built-in scenario: ")
    return text.removeprefix("built-in scenario: ")


# (where the key is put, the misspelt key, what was meant)
MISSPELT = [
    ({"nam": "x"}, "nam", "name"),
    ({"workloads": {}}, "workloads", "workload"),
    ({"target.confg": "x"}, "target.confg", "config"),
    ({"draft.n_gpu": 1}, "draft.n_gpu", "n_gpus"),
    ({"engine.max_num_seq": 1}, "engine.max_num_seq", "max_num_seqs"),
    ({"step_time.jiter_cv": 1}, "step_time.jiter_cv", "jitter_cv"),
    ({"step_time.target.base": 1}, "step_time.target.base", "base_s"),
    ({"step_time.prefill": CONSTANT | {"times": 1}}, "step_time.prefill.times", "time_s"),
    ({"acceptance.alpa": 1}, "acceptance.alpa", "alpha"),
    (
        {"acceptance": {"kind": "position", "rates": [0.5], "convension": "conditional"}},
        "acceptance.convension",
        "convention",
    ),
    (
        {"acceptance": {"kind": "beta", "mean": 0.5, "concentraton": 2.0}},
        "acceptance.concentraton",
        "concentration",
    ),
    ({"workload": BATCH | {"output_token": 1}}, "workload.output_token", "output_tokens"),
    # The kind concurrency has a key of the same name.
    (
        {"workload": BATCH | {"kind": "concurrency", "concurency": 2}},
        "workload.concurency",
        "concurrency",
    ),
    (
        {"workload.prompt_tokens": {"kind": "lognormal", "mean": 9, "cv": 1.0, "maxi": 9}},
        "workload.prompt_tokens.maxi",
        "max",
    ),
    (
        {"workload.output_tokens": {"kind": "empirical", "values": [1], "weight": [1.0]}},
        "workload.output_tokens.weight",
        "weights",
    ),
]


@pytest.mark.parametrize("overrides, key, meant", MISSPELT, ids=lambda v: str(v)[:40])
def test_unknown_key_at_every_depth(overrides, key, meant):
    text = refusal(overrides)
    name = key.rsplit(".", 1)[-1]
    assert text.startswith(f"{key}: unknown key '{name}'; did you mean '{meant}'?")
    # The keys listed are those of this kind alone.
    listed = re.search(r"expected one of (.*)$", text)[1].split(", ")
    assert meant in listed
    if key.startswith("workload.conc"):
        assert listed == ["concurrency", "kind", "n_requests", "output_tokens", "prompt_tokens"]


KINDS = [
    ({"acceptance": {"kind": "markow"}}, "acceptance: kind is 'markow'; did you mean 'markov'?"),
    ({"acceptance": {"kind": "IID", "alpha": 0.5}}, "did you mean 'iid'?"),
    (
        {"acceptance": {"kind": 5}},
        "acceptance: kind is 5; expected one of beta, ensemble, histogram",
    ),
    ({"acceptance": {"kind": None}}, "acceptance: kind is null; expected one of beta"),
    ({"acceptance": {"kind": [1]}}, "acceptance: kind is [1]; expected one of beta"),
    ({"acceptance": {"alpha": 0.5}}, "acceptance: 'acceptance' does not say its kind; expected"),
    ({"step_time.target": {"kind": "rofline"}}, "step_time.target: kind is 'rofline'; did you"),
    ({"step_time.draft": {"time_s": 1}}, "'draft' does not say its kind; expected one of affine"),
    ({"workload": {"kind": "poison"}}, "workload: kind is 'poison'; did you mean 'poisson'?"),
    ({"workload": {}}, "workload: 'workload' does not say its kind; expected one of batch"),
    (
        {"workload.prompt_tokens": {"kind": "lognorm", "mean": 5.0}},
        "workload.prompt_tokens: kind is 'lognorm'; did you mean 'lognormal'?; "
        "expected one of empirical, lognormal",
    ),
    (
        {"workload.prompt_tokens": {"mean": 5.0, "cv": 1.0}},
        "expected a whole number, or a kind: lognormal or empirical",
    ),
]


@pytest.mark.parametrize("overrides, words", KINDS, ids=lambda v: str(v)[:40])
def test_kinds(overrides, words):
    assert words in refusal(overrides)


WRONG_TYPES = [
    ({"name": None}, "name: found null; expected a text"),
    ({"name": ""}, "name: found an empty text"),
    ({"name": ["a"]}, "name: found ['a']; expected a text"),
    ({"target": 5}, "target: found 5; expected a mapping of keys"),
    ({"target": None}, "target: found null; expected a mapping of keys"),
    ({"step_time": []}, "step_time: found []; expected a mapping of keys"),
    ({"step_time.target": "fast"}, "step_time.target: found 'fast'; expected a mapping of keys"),
    ({"engine": True}, "engine: found true; expected a mapping of keys"),
    ({"acceptance.alpha": "0.5"}, "acceptance.alpha: '0.5' is a text where a number is expected"),
    ({"acceptance.alpha": [0.5]}, "acceptance.alpha: found [0.5]; expected a number"),
    ({"acceptance.alpha": None}, "acceptance.alpha: found null; expected a number"),
    ({"acceptance.alpha": True}, "acceptance.alpha: True is a truth value"),
    ({"step_time.sync_s": float("nan")}, "step_time.sync_s: found nan; expected a finite number"),
    ({"step_time.sync_s": float("inf")}, "step_time.sync_s: found inf; expected a finite number"),
    ({"engine.max_num_seqs": "16"}, "engine.max_num_seqs: found '16'; expected a whole number"),
    ({"engine.max_num_seqs": 2.5}, "engine.max_num_seqs: found 2.5; expected a whole number"),
    ({"engine.chunked_prefill": "no"}, "chunked_prefill: found 'no'; expected true or false"),
    ({"engine.kv_blocks": 0}, "kv_blocks: found 0; expected at least 1 or 'unlimited'"),
    ({"engine.kv_blocks": "all"}, "found 'all'; expected a whole number or 'unlimited'"),
    ({"draft.shared": 1}, "draft.shared: found 1; expected true or false"),
    ({"draft.n_gpus": 1.5}, "draft.n_gpus: found 1.5; expected a whole number"),
    ({"assumed": {"acceptance.alpha": 5}}, "found 5; expected a text"),
    (
        {"engine.routing": "randomly"},
        "routing: found 'randomly'; expected 'round_robin' or 'least_loaded'",
    ),
    (
        {"acceptance": {"kind": "position", "convention": "conditionl", "rates": [0.5]}},
        "acceptance.convention: found 'conditionl'; did you mean 'conditional'?",
    ),
    (
        {"acceptance": {"kind": "position", "convention": "conditional", "rates": []}},
        "acceptance.rates: found []; expected at least 1 of them",
    ),
    (
        {"acceptance": {"kind": "position", "convention": "conditional", "rates": [0.5, 1.5]}},
        "acceptance.rates.1: found 1.5; expected at most 1",
    ),
    (
        {"step_time.target": {"kind": "table", "rows": [[1, 1, 0]]}},
        "step_time.target.rows.0.3: number 4 of the list is missing",
    ),
    (
        {"step_time.target": {"kind": "table", "rows": [[1, 1, 0, 0]]}},
        "step_time.target.rows.0.3: found 0; expected more than 0",
    ),
    ({"workload": {"kind": "trace"}}, "workload.path: the key 'path' is missing"),
    (
        {"workload": BATCH | {"kind": "concurrency"}},
        "workload.concurrency: the key 'concurrency' is missing",
    ),
    ({"workload": BATCH | {"kind": "gamma", "rate": 1}}, "the key 'burstiness' is missing"),
    ({"engine": {}}, "engine.max_num_seqs: the key 'max_num_seqs' is missing"),
]


@pytest.mark.parametrize("overrides, words", WRONG_TYPES, ids=lambda v: str(v)[:40])
def test_wrong_type_or_range(overrides, words):
    assert words in refusal(overrides)


def test_other_problems_are_counted_by_key():
    text = refusal({"acceptance.alpha": 2, "engine.max_num_seqs": 0, "draft.n_gpus": 0})
    assert "(2 more problems in this scenario)" in text
    text = refusal({"acceptance.alpha": 2, "engine.kv_blocks": 0})
    assert "(1 more problem in this scenario)" in text
    assert "more problem" not in refusal({"engine.kv_blocks": 0})


def test_a_huge_value_is_cut():
    assert len(refusal({"name": list(range(10**6))})) < 200


TOGETHER = [
    ({"draft": None}, "found acceptance and step_time.draft only; expected all three or none"),
    ({"acceptance": None}, "found draft and step_time.draft only"),
    ({"step_time.draft": None, "draft": None}, "found acceptance only"),
    (
        {
            "draft": None,
            "acceptance": None,
            "step_time.draft": None,
            "step_time.draft_prefill": CONSTANT,
        },
        "step_time.draft_prefill has no effect",
    ),
    ({"draft.shared": True, "draft.serial_on": "own"}, "draft.serial_on: own has no effect"),
    ({"target.gpu": "measured"}, "engine.kv_blocks is null and target.gpu is measured"),
    ({"draft.gpu": "measured"}, "engine.kv_blocks is null and draft.gpu is measured"),
    (
        {"target.gpu": "measured", "step_time.prefill": {"kind": "roofline"}},
        "step_time.prefill is a roofline and target.gpu is measured",
    ),
    (
        {"draft.gpu": "measured", "step_time.draft": {"kind": "roofline"}},
        "step_time.draft is a roofline and draft.gpu is measured",
    ),
    ({"draft.serial_on": "draft"}, "draft.serial_on: found 'draft'; expected 'target' or 'own'"),
    ({"draft.slow_down": {"target": 1.1}}, "draft.slow_down.draft: the key 'draft' is missing"),
    ({"draft.slow_down": {"target": 0.9, "draft": 1.0}}, "draft.slow_down.target: found 0.9"),
    ({"draft.slow_down": {"targt": 1.1, "draft": 1.0}}, "unknown key 'targt'; did you mean 'targ"),
    (
        {
            "draft": None,
            "acceptance": None,
            "step_time.draft": None,
            "step_time.draft_jitter_cv": 0.1,
        },
        "step_time.draft_jitter_cv has no effect",
    ),
    (
        {
            "draft": None,
            "acceptance": None,
            "step_time.draft": None,
            "step_time.draft_start_s": 0.001,
        },
        "step_time.draft_start_s has no effect",
    ),
    ({"draft.shared": True, "draft.slow_down": True}, "draft.slow_down: True is a truth value"),
    ({"draft.shared": True, "draft.slow_down": 0.5}, "draft.slow_down: found 0.5; expected at"),
    ({"engine.routing": "round_robin"}, "engine.routing has no effect: it needs n_replicas"),
    (
        {"step_time.target": {"kind": "constant", "time_s": 0.0}, "step_time.step_overhead_s": 0.0},
        "a target pass takes no time",
    ),
    (
        {"step_time.target": {"kind": "affine", "base_s": 0.0}, "step_time.step_overhead_s": 0.0},
        "a target pass takes no time",
    ),
    ({"assumed": {"acceptance.alhpa": "x"}}, "there is no key 'alhpa'; did you mean 'alpha'?"),
    ({"assumed": {"workload.rate": "x"}}, "assumed names 'workload.rate'"),
    ({"assumed": {"name.x": "x"}}, "assumed names 'name.x'"),
]


@pytest.mark.parametrize("overrides, words", TOGETHER, ids=lambda v: str(v)[:50])
def test_right_one_by_one_and_wrong_together(overrides, words):
    assert words in refusal(overrides)


def test_free_target_passes_are_fine_with_an_overhead():
    scenario = Scenario.builtin({"step_time.target": {"kind": "constant", "time_s": 0.0}})
    assert scenario.step_time.step_overhead_s > 0


@pytest.mark.parametrize(
    "texts, words",
    [
        (["a"], "found 'a'; expected key.path=value"),
        (["=5"], "found '=5'"),
        (["a.=5"], "found 'a.=5'"),
        ([".a=5"], "found '.a=5'"),
        (["a..b=5"], "found 'a..b=5'"),
        (["a={b: 1, b: 2}"], "the value '{b: 1, b: 2}' of a can't be read: the key 'b' stands"),
        (["a=[1"], "of a can't be read: is not YAML"),
        (["a={1: 2}"], "the key '1' is of type int; expected a name"),
        (["a=1", "a=2"], "'a=2' undoes the setting of a before it"),
        (["a.b=1", "a={}"], "'a={}' undoes the setting of a.b before it"),
    ],
)
def test_assignments_that_cannot_be(texts, words):
    with pytest.raises(InputError) as error:
        parse_assignments(texts)
    assert str(error.value).startswith("--set: ")
    assert words in str(error.value)


def test_a_section_first_and_then_one_of_its_keys():
    given = parse_assignments(["acceptance={kind: iid, alpha: 0.5}", "acceptance.alpha=0.6"])
    assert Scenario.builtin(given).acceptance.alpha == 0.6
    # Names that only begin alike are different keys.
    assert parse_assignments(["ab=1", "a=2"]) == {"ab": 1, "a": 2}


@pytest.mark.parametrize("path", ["acceptance.alpha.x", "name.x", "workload.n_requests.x.y"])
def test_no_way_into_a_figure(path):
    with pytest.raises(InputError, match=r"--set: .* goes into '"):
        Scenario.builtin({path: 1})
