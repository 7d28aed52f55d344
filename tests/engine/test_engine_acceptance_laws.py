"""Every acceptance model inside the engine: round lengths follow the model's own law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from psdsim.acceptance import (
    BetaAcceptance,
    HistogramAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MarkovRoundsAcceptance,
    MeanLengthAcceptance,
    PositionAcceptance,
)
from tests.engine.kit import run, work

K = 4
MODELS = {
    "iid": IidAcceptance(alpha=0.7),
    "mean_length": MeanLengthAcceptance(length=2.5, k=4, includes_bonus=True),
    "position": PositionAcceptance(rates=(0.9, 0.6, 0.7, 0.3), convention="conditional"),
    "unconditional": PositionAcceptance(rates=(0.8, 0.5, 0.4, 0.1), convention="unconditional"),
    "histogram": HistogramAcceptance(counts=(210, 150, 110, 90, 440)),
    "markov": MarkovAcceptance(after_accept=0.85, after_reject=0.4),
    "markov_rounds": MarkovRoundsAcceptance(
        after_full=(0.9, 0.9, 0.8, 0.8), otherwise=(0.5, 0.7, 0.7, 0.7)
    ),
    "beta": BetaAcceptance(a=4.0, b=1.5),
}


def round_lengths(model, schedule, n_requests=60, n_tokens=2000):
    """Accepted drafts per step at batch 1 (one request's round a step)."""
    raw = run(schedule, K, work([n_tokens] * n_requests), m=1, acceptance=model, seed=4)
    decode = raw.steps["n_verify_seqs"] > 0
    return raw, raw.steps["n_accepted_tokens"][decode]


# Requests of the beta model differ: it is checked by its pooled length below.
@pytest.mark.parametrize("name", [name for name in MODELS if name != "beta"])
def test_rounds_of_serial_sd_follow_the_law(name):
    model = MODELS[name]
    _, accepted = round_lengths(model, "sd")
    if name.startswith("markov"):
        accepted = accepted[::40]  # rounds far enough apart to be independent
    counts = np.bincount(accepted, minlength=K + 1)
    expected = model.pmf(K) * counts.sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-4, (counts, expected)


def test_the_chi_square_notices_another_law():
    _, accepted = round_lengths(MODELS["iid"], "sd")
    counts = np.bincount(accepted, minlength=K + 1)
    wrong = IidAcceptance(alpha=0.71).pmf(K) * counts.sum()
    assert stats.chisquare(counts, wrong).pvalue < 1e-4


@pytest.mark.parametrize("name", ["iid", "markov", "markov_rounds", "position", "beta"])
def test_pooled_acceptance_length(name):
    model = MODELS[name]
    lengths = []
    for replication in range(8):
        raw = run("sd", K, work([1000] * 100), m=20, acceptance=model, replication=replication)
        lengths.append(raw.tally.n_round_tokens / raw.tally.n_decode_seq_steps)
    lengths = np.array(lengths)
    error = lengths.std(ddof=1) / math.sqrt(lengths.size)
    theory = model.pooled_acceptance_length(K)
    # The first round of a request starts without memory, the last is not clipped in this count:
    # both weigh below 0.1 % at 1000 tokens.
    assert abs(lengths.mean() - theory) < 4.5 * error + 0.001 * theory, (lengths.mean(), theory)


def test_lag_of_markov_rounds():
    _, accepted = round_lengths(MODELS["markov_rounds"], "sd")
    after_full = accepted[1:][accepted[:-1] == K]
    otherwise = accepted[1:][accepted[:-1] < K]
    assert (after_full > 0).mean() == pytest.approx(0.9, abs=0.02)
    assert (otherwise > 0).mean() == pytest.approx(0.5, abs=0.02)


def test_pearl_with_position_rates_uses_the_place_in_the_block():
    # Pre-verify tests place 1 of a block, post-verify places 2..k and place 1 of the next.
    model = PositionAcceptance(rates=(1.0, 0.0, 1.0), convention="conditional")
    raw = run("pearl", 3, work([40]), m=1, acceptance=model)
    # place 1 accepted; post-verify rejects place 2: corrected; and so on, two steps for two tokens.
    assert raw.requests["n_rounds"].tolist() == [39]
    assert raw.requests["n_accepted_tokens"].tolist() == [20]


def test_markov_chain_makes_pearl_worse_than_iid_at_the_same_mean():
    clustered = MarkovAcceptance(after_accept=0.9, after_reject=0.4)
    mean = clustered.stationary
    a = run("pearl", 5, work([3000] * 20), m=20, acceptance=clustered)
    b = run("pearl", 5, work([3000] * 20), m=20, acceptance=IidAcceptance(alpha=mean))
    from analysis.pearl import tokens_per_step

    for raw, theory in (
        (a, tokens_per_step(0.9, 5, 0.4)),
        (b, tokens_per_step(mean, 5)),
    ):
        length = raw.tally.n_round_tokens / raw.tally.n_decode_seq_steps
        assert length == pytest.approx(float(theory), rel=0.01)
