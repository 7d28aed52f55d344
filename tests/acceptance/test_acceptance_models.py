"""Acceptance models as scenario files state them: discrimination, extension, refusals, notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from psdsim.acceptance import (
    UNPAIRED,
    Acceptance,
    AcceptanceModel,
    BetaAcceptance,
    HistogramAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MarkovRoundsAcceptance,
    MeanLengthAcceptance,
    PositionAcceptance,
    Replay,
    TapeModel,
)
from psdsim.errors import InputError

ADAPTER: TypeAdapter[AcceptanceModel] = TypeAdapter(Acceptance)

VALID: dict[str, dict[str, Any]] = {
    "iid": {"kind": "iid", "alpha": 0.8},
    "position": {"kind": "position", "rates": [0.8, 0.7], "convention": "conditional"},
    "mean_length": {"kind": "mean_length", "length": 2.5, "k": 3, "includes_bonus": True},
    "histogram": {"kind": "histogram", "counts": [3, 2, 1]},
    "markov": {"kind": "markov", "after_accept": 0.8, "after_reject": 0.5},
    "markov_rounds": {"kind": "markov_rounds", "after_full": [0.9], "otherwise": [0.6]},
    "beta": {"kind": "beta", "mean": 0.8, "concentration": 5.0},
    "replay": {"kind": "replay", "k": 3, "rounds": [[1, 3], [0]]},
}
JUDGED_BY = {
    "iid": "tape", "mean_length": "tape", "markov": "tape", "beta": "tape",
    "position": "position", "histogram": "position", "markov_rounds": "rounds",
    "replay": "replay",
}  # fmt: skip


@pytest.mark.parametrize("kind", VALID)
def test_kind_chooses_the_model_and_it_survives_a_round_trip(kind: str) -> None:
    model = ADAPTER.validate_python(VALID[kind])
    assert (model.judged_by, isinstance(model, TapeModel)) == (
        JUDGED_BY[kind],
        JUDGED_BY[kind] == "tape",
    )
    assert model.paired == (JUDGED_BY[kind] == "tape")
    assert ADAPTER.validate_json(ADAPTER.dump_json(model)) == model
    assert hash(model) == hash(ADAPTER.validate_python(VALID[kind]))
    with pytest.raises(ValidationError, match="frozen"):
        model.kind = "iid"  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", VALID)
def test_unknown_keys_are_refused(kind: str) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        ADAPTER.validate_python({**VALID[kind], "alhpa": 0.8})


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("iid", {"alpha": 1.2}, "less than or equal to 1"),
    ("iid", {"alpha": -0.1}, "greater than or equal to 0"),
    ("iid", {"alpha": float("nan")}, "finite number"),
    ("iid", {"alpha": True}, "truth value"),
    ("iid", {"alpha": np.bool_(True)}, "truth value"),
    ("iid", {"alpha": float("inf")}, "finite|less than or equal to 1"),
    ("position", {"rates": []}, "at least 1 item"),
    ("position", {"rates": [0.5, True]}, "truth value"),
    ("position", {"convention": None}, "conditional"),
    ("position", {"rates": [0.5, 0.6], "convention": "unconditional"}, "exceeds 0.5 before it"),
    ("position", {"extend": "repeat"}, "'refuse' or 'last'"),
    ("mean_length", {"length": 4.5}, "which k=3 can't give; expected 1 to 4"),
    ("mean_length", {"length": 0.9}, "expected 1 to 4"),
    ("mean_length", {"length": 3.5, "includes_bonus": False}, "0 to 3 without the bonus token"),
    ("mean_length", {"includes_bonus": "yes"}, "valid boolean"),
    ("mean_length", {"k": 0}, "greater than or equal to 1"),
    ("histogram", {"counts": [3]}, "at least 2 items"),
    ("histogram", {"counts": [0, 0]}, "all counts are 0"),
    ("histogram", {"counts": [1, -1]}, "greater than or equal to 0"),
    ("histogram", {"counts": [1, 0.5]}, "valid integer"),
    ("histogram", {"counts": [2**62] * 4}, "sum to 1.84e.19; expected at most 2.53"),
    ("markov", {"after_accept": 1.0, "after_reject": 0.0}, "never leaves a state"),
    ("markov_rounds", {"after_full": [0.9, 0.8]}, "2 rates and otherwise 1"),
    ("beta", {"a": 1.0}, "expected a and b, or mean and concentration"),
    ("beta", {"concentration": None}, "expected a and b, or mean and concentration"),
    ("beta", {"mean": 1.0}, "strictly between 0 and 1"),
    ("beta", {"concentration": 0.0}, "greater than 0"),
    ("beta", {"mean": 0.5, "concentration": 1e300}, "shape parameter a is 5e.299; expected 1e-12"),
    ("beta", {"mean": 1e-320, "concentration": 1e-10}, "shape parameter a is 0; expected 1e-12"),
    ("replay", {"path": "x.json"}, "either path or rounds"),
    ("replay", {"rounds": None}, "either path or rounds"),
    ("replay", {"rounds": []}, "empty"),
    ("replay", {"rounds": [[1], []]}, "request 1 has no rounds"),
    ("replay", {"rounds": [[1], [4]]}, "request 1 has a round with 4 accepted drafts at k=3"),
]


@pytest.mark.parametrize("kind, changed, message", BAD)
def test_bad_values_are_refused(kind: str, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ADAPTER.validate_python({**VALID[kind], **changed})


@pytest.mark.parametrize("left_out", [("position", "convention"), ("mean_length", "includes_bonus"),
                                      ("mean_length", "k"), ("replay", "k")])  # fmt: skip
def test_what_decides_the_answer_has_no_default(left_out: tuple[str, str]) -> None:
    kind, key = left_out
    given = {name: value for name, value in VALID[kind].items() if name != key}
    with pytest.raises(ValidationError, match="Field required"):
        ADAPTER.validate_python(given)


MEASURED_AT_2 = [
    PositionAcceptance(rates=(0.8, 0.5), convention="conditional"),
    HistogramAcceptance(counts=(2, 4, 4)),  # P(L>=1) = .8, P(L>=2) = .4
    MarkovRoundsAcceptance(after_full=(0.8, 0.5), otherwise=(0.8, 0.5)),
]


@pytest.mark.parametrize("model", MEASURED_AT_2)
def test_beyond_the_measured_k_only_when_asked_to(model: AcceptanceModel) -> None:
    for call in (model.check_k, model.conditional_rates, model.pmf, model.acceptance_length,
                 model.notes):  # fmt: skip
        with pytest.raises(InputError, match=r"measured at k=2 and k=3 .*extend: last"):
            call(3)
    extended = model.model_copy(update={"extend": "last"})
    np.testing.assert_allclose(extended.conditional_rates(4), [0.8, 0.5, 0.5, 0.5], atol=1e-15)
    assert "repeated beyond it" in extended.notes(4)[0]
    assert "shorter round" in extended.notes(1)[0]
    assert extended.notes(2) == [UNPAIRED]


@pytest.mark.parametrize("kind", VALID)
@pytest.mark.parametrize("k", [-1, 1.0, True, None, "2"])
def test_every_model_refuses_a_k_that_is_no_length(kind: str, k: Any) -> None:
    model = ADAPTER.validate_python(VALID[kind])
    for call in (model.check_k, model.conditional_rates, model.pmf):
        with pytest.raises(InputError, match="the draft length k is"):
            call(k)


@pytest.mark.parametrize("kind", VALID)
def test_no_drafts_means_one_token_a_round(kind: str) -> None:
    model = ADAPTER.validate_python(VALID[kind])
    assert model.acceptance_length(0) == 1.0
    assert model.pmf(0).tolist() == [1.0]
    assert model.var_accepted(0) == 0.0


def test_conditional_rates_after_are_what_was_stated() -> None:
    model = MarkovRoundsAcceptance(after_full=(0.9, 0.8), otherwise=(0.6, 0.7), extend="last")
    full, other = model.conditional_rates_after(3)
    assert (full.tolist(), other.tolist()) == ([0.9, 0.8, 0.8], [0.6, 0.7, 0.7])
    assert [rates.size for rates in model.conditional_rates_after(0)] == [0, 0]


def test_rounds_that_never_mix_are_refused_only_where_it_matters() -> None:
    model = MarkovRoundsAcceptance(after_full=(1.0, 0.5), otherwise=(0.0, 0.5))
    with pytest.raises(InputError, match="never leaves a state"):
        model.pmf(1)
    assert model.pmf(2).tolist() == [1.0, 0.0, 0.0]  # leaves `full` and never comes back


def test_mean_length_at_its_ends_and_without_bonus() -> None:
    for length, alpha in ((0.0, 0.0), (4.0, 1.0)):
        model = MeanLengthAcceptance(length=length, k=4, includes_bonus=False)
        assert model.alpha == alpha
        assert model.acceptance_length(4) == length + 1.0
    with_bonus = MeanLengthAcceptance(length=2.5, k=3, includes_bonus=True)
    without = MeanLengthAcceptance(length=1.5, k=3, includes_bonus=False)
    assert with_bonus.alpha == without.alpha
    assert with_bonus.acceptance_length(3) == pytest.approx(2.5, abs=1e-12)
    assert "guess" not in with_bonus.notes(3)[0]
    assert "guess" in with_bonus.notes(4)[0]


def test_beta_note_names_both_mean_lengths() -> None:
    # Beta(4, 1) has density 4 x^3. At k=1, E[N] = 1 + 4/5, and the pooled length is
    # 1 / E[1 / (1 + x)] = 1 / (4 (5/6 - ln 2)) = 1.78334.
    (note,) = BetaAcceptance(a=4.0, b=1.0).notes(1)
    assert "1.783" in note
    assert "1.8)" in note
    assert IidAcceptance(alpha=0.5).notes(3) == []
    assert MarkovAcceptance(after_accept=0.5, after_reject=0.4).notes(3) == []


def read_as_rates(curve: dict[int, float]) -> int:
    """Check that rates can be built from acceptance lengths by k; return how far they reach."""
    # A curve that falls or bends up (noise) can't be read as one table of rates.
    steps = np.diff([1.0, *(curve[k] for k in sorted(curve))])
    n = next((i for i in range(1, 8) if not 0 <= steps[i] <= steps[i - 1]), 8)
    model = PositionAcceptance(rates=tuple(steps[:n]), convention="unconditional")
    for k in range(1, n + 1):
        assert model.acceptance_length(k) == pytest.approx(curve[k], abs=1e-12)
        iid = MeanLengthAcceptance(length=curve[k], k=k, includes_bonus=True)
        assert iid.acceptance_length(k) == pytest.approx(curve[k], abs=1e-12)
    # Drafts fade with their position: i.i.d. solved at k=1 promises too much at k=3.
    at_1 = MeanLengthAcceptance(length=curve[1], k=1, includes_bonus=True)
    assert at_1.acceptance_length(3) > curve[3]
    return n


def test_golden_acceptance_lengths_of_one_model() -> None:
    """Kimi-K2.5 with an EAGLE-3 drafter, thinking on, InferenceX run 28122195822."""
    lengths = (1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77)
    curve = dict(enumerate(lengths, 1))
    assert read_as_rates(curve) == 8
    # The second difference by hand: (2.43 - 1.83) / (1.83 - 1).
    rates = PositionAcceptance(rates=(0.83, 0.60), convention="unconditional").conditional_rates(2)
    assert rates.tolist() == pytest.approx([0.83, 0.722891566], abs=1e-9)
    # Read in the other convention, the same numbers mean something else.
    wrong = PositionAcceptance(rates=(0.83, 0.60), convention="conditional")
    assert wrong.acceptance_length(2) == pytest.approx(1 + 0.83 + 0.83 * 0.60)


def test_golden_acceptance_lengths_that_people_publish() -> None:
    """Acceptance length by k (bonus counted), one file a model, of the InferenceX repository.

    A difference of successive lengths estimates P(the first k drafts are all accepted): the
    unconditional convention, if a rate doesn't depend on how many drafts follow it.
    """
    folder = Path(__file__).parents[2].parent / "shared" / "data" / "acceptance"
    files = sorted(folder.glob("*.yaml"))
    if not files:
        pytest.skip(f"no measured acceptance lengths in {folder}")
    curves = [
        curve
        for file in files
        for modes in yaml.safe_load(file.read_text(encoding="utf-8")).values()
        for curve in modes.values()
    ]
    assert len(curves) == 10
    for curve in curves:
        assert read_as_rates(curve) >= 3


def test_replay_law_and_binding() -> None:
    model = Replay(k=3, rounds=((0, 3, 3), (2, 3)))
    assert model.pmf(3) == pytest.approx([0.2, 0.0, 0.2, 0.6], abs=1e-15)
    assert [row.tolist() for row in model.recorded()] == [[0, 3, 3], [2, 3]]
    assert all(row.dtype == np.int64 for row in model.recorded())
    for k in (1, 2, 4):
        with pytest.raises(InputError, match=f"recording has k=3 and k={k}"):
            model.pmf(k)
    with pytest.raises(InputError, match="no law of chain rounds"):
        model.model_copy(update={"bonus": False}).pmf(3)
    unread = Replay(k=3, path="rounds.json")
    with pytest.raises(InputError, match="has not been read"):
        unread.recorded()
    (note,) = model.notes(3)
    assert note.startswith("acceptance replays 2 recorded requests at k=3")
    assert note.endswith("not paired")
    (note,) = unread.notes(3)
    assert note.startswith("acceptance replays the file rounds.json at k=3")
