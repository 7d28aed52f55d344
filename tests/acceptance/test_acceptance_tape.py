"""Tape models: bits walked as a serial engine walks them, against the models' own laws.

A round tests k positions from the cursor and moves it on by accepted + 1 (the corrected or bonus
token). One round of each request is looked at, so that counts are independent.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from psdsim.acceptance import (
    BetaAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MeanLengthAcceptance,
    TapeModel,
)

N_ROWS = 30_000
LOOKED_AT = 9  # by then the round chain of every case below has forgotten its start


def bit_rows(model: TapeModel, width: int, seed: int, n_rows: int = N_ROWS) -> NDArray[np.bool_]:
    """Return bits, shape (n_rows, width), through the flat interface that the engine uses."""
    rng = np.random.default_rng(seed)
    starts = np.arange(n_rows, dtype=np.int64) * width
    return model.accept_bits(rng.random(n_rows * width), starts, rng.random(n_rows)).reshape(
        n_rows, width
    )


def walk(bits: NDArray[np.bool_], k: int, n_rounds: int) -> NDArray[np.int64]:
    """Return accepted drafts, shape (n_rows, n_rounds)."""
    cursor = np.zeros(len(bits), dtype=np.int64)
    out = []
    for _ in range(n_rounds):
        tested = np.take_along_axis(bits, cursor[:, None] + np.arange(k), axis=1)
        accepted = np.cumprod(tested, axis=1, dtype=np.int64).sum(axis=1)
        out.append(accepted)
        cursor = cursor + accepted + 1
    return np.stack(out, axis=1)


def p_value(values: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """Return the chi-square p-value of a sample against a law on 0..len-1."""
    counts = np.bincount(values, minlength=law.size)
    expected = law * values.size
    assert counts[expected == 0].sum() == 0
    used = expected > 0
    assert expected[used].min() > 5, "cells too small for a chi-square test"
    return float(stats.chisquare(counts[used], expected[used] / law.sum()).pvalue)


CASES = [
    pytest.param(IidAcceptance(alpha=0.8), 4, id="iid-0.8"),
    pytest.param(IidAcceptance(alpha=0.6), 3, id="iid-0.6"),
    pytest.param(MeanLengthAcceptance(length=2.5, k=3, includes_bonus=True), 5, id="mean-length"),
    pytest.param(MarkovAcceptance(after_accept=0.85, after_reject=0.55), 4, id="clustered"),
    pytest.param(MarkovAcceptance(after_accept=0.5, after_reject=0.9), 3, id="alternating"),
    pytest.param(MarkovAcceptance(after_accept=0.9, after_reject=0.2), 1, id="clustered-k1"),
    pytest.param(BetaAcceptance(a=4.0, b=1.0), 5, id="beta-4-1"),
    pytest.param(BetaAcceptance(mean=0.7, concentration=3.0), 3, id="beta-0.7"),
]


@pytest.mark.parametrize("model, k", CASES)
def test_serial_rounds_on_the_tape_follow_the_pmf(model: TapeModel, k: int) -> None:
    bits = bit_rows(model, (LOOKED_AT + 1) * (k + 1), seed=11)
    accepted = walk(bits, k, LOOKED_AT + 1)[:, LOOKED_AT]
    assert p_value(accepted, model.pmf(k)) > 1e-3


@pytest.mark.parametrize("model, k", CASES)
def test_the_same_walk_refutes_a_law_at_k_from_a_shifted_rate(model: TapeModel, k: int) -> None:
    bits = bit_rows(model, (LOOKED_AT + 1) * (k + 1), seed=11)
    accepted = walk(bits, k, LOOKED_AT + 1)[:, LOOKED_AT]
    rates = model.conditional_rates(k) - 0.03
    survival = np.concatenate([[1.0], np.cumprod(rates)])
    shifted = survival * np.concatenate([1.0 - rates, [1.0]])
    assert p_value(accepted, shifted) < 1e-6


def round_chain(after_accept: float, after_reject: float, k: int) -> NDArray[np.float64]:
    """Return P(previous bit -> accepted, next previous bit), shape (2, k+1, 2), by enumeration."""
    table = np.zeros((2, k + 1, 2))
    for before, bits in product((0, 1), product((0, 1), repeat=k + 1)):
        probability, last = 1.0, before
        for bit in bits:
            accept = after_accept if last else after_reject
            probability *= accept if bit else 1.0 - accept
            last = bit
        accepted = next((i for i, bit in enumerate(bits[:k]) if not bit), k)
        table[before, accepted, bits[accepted]] += probability
    return table


@pytest.mark.parametrize("rates", [(0.85, 0.55), (0.5, 0.9), (0.95, 0.05), (1.0, 0.3), (0.4, 0.0)])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_markov_law_equals_enumeration_of_all_bit_strings(
    rates: tuple[float, float], k: int
) -> None:
    table = round_chain(*rates, k)
    step = table.sum(axis=1)  # previous bit -> next previous bit
    share = step[0, 1] / (1.0 - step[1, 1] + step[0, 1])
    law = (1.0 - share) * table[0].sum(axis=1) + share * table[1].sum(axis=1)
    model = MarkovAcceptance(after_accept=rates[0], after_reject=rates[1])
    np.testing.assert_allclose(model.pmf(k), law, atol=1e-14)
    assert model.mean_accepted(k) == pytest.approx(float(np.arange(k + 1) @ law), abs=1e-13)


def joint_of_successive_rounds(model: MarkovAcceptance, k: int) -> NDArray[np.float64]:
    """Return P(L_n = i, L_{n+1} = j) in stationarity, shape (k+1, k+1), by enumeration."""
    table = round_chain(model.after_accept, model.after_reject, k)
    step = table.sum(axis=1)
    share = step[0, 1] / (1.0 - step[1, 1] + step[0, 1])
    start = np.array([1.0 - share, share])
    return np.asarray(np.einsum("b,bin,nj->ij", start, table, table.sum(axis=2)))


@pytest.mark.parametrize(
    "model", [MarkovAcceptance(after_accept=0.9, after_reject=0.4), MarkovAcceptance(
        after_accept=0.6, after_reject=0.9)]
)  # fmt: skip
def test_markov_rounds_depend_on_each_other_as_enumeration_says(model: MarkovAcceptance) -> None:
    k = 2
    joint = joint_of_successive_rounds(model, k)
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))

    rounds = walk(bit_rows(model, 12 * (k + 1), seed=5), k, 11)
    pairs = rounds[:, 9] * (k + 1) + rounds[:, 10]
    assert p_value(pairs, joint.ravel()) > 1e-3
    assert p_value(pairs, independent.ravel()) < 1e-6

    drawn = model.sample(k, 3 * N_ROWS, np.random.default_rng(6))
    # Pairs far apart, so that they are nearly independent of each other.
    pairs = drawn[0::6][: N_ROWS // 2] * (k + 1) + drawn[1::6][: N_ROWS // 2]
    assert p_value(pairs, joint.ravel()) > 1e-3
    assert p_value(pairs, independent.ravel()) < 1e-6

    requests = model.sample_requests(k, 10_000, 2, np.random.default_rng(7))
    assert p_value(requests @ np.array([k + 1, 1]), joint.ravel()) > 1e-3


def test_beta_rounds_of_a_request_share_its_rate_as_quadrature_says() -> None:
    # P(L_1 = i, L_2 = j) is the mean over the rate of the product of the two i.i.d. laws.
    a, b, k = 2.0, 1.5, 2
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x = np.sin(np.pi / 4 * (nodes + 1)) ** 2  # takes the root out of the density's end
    slope = np.pi / 4 * np.sin(np.pi / 2 * (nodes + 1))
    weights = weights * slope * stats.beta.pdf(x, a, b)
    law = np.stack([1 - x, x * (1 - x), x**2])
    joint = np.asarray(np.einsum("in,jn,n->ij", law, law, weights))
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))

    model = BetaAcceptance(a=a, b=b)
    on_tape = walk(bit_rows(model, 2 * (k + 1), seed=13), k, 2)
    drawn = model.sample_requests(k, N_ROWS, 2, np.random.default_rng(14))
    for rounds in (on_tape, drawn):
        pairs = rounds @ np.array([k + 1, 1])
        assert p_value(pairs, joint.ravel()) > 1e-3
        assert p_value(pairs, independent.ravel()) < 1e-6
    # `sample` draws one round each of many requests, so its neighbours are independent.
    drawn = model.sample(k, 2 * N_ROWS, np.random.default_rng(15)).reshape(-1, 2)
    assert p_value(drawn @ np.array([k + 1, 1]), independent.ravel()) > 1e-3


def test_markov_tape_starts_in_stationarity_and_keeps_it_at_every_position() -> None:
    model = MarkovAcceptance(after_accept=0.9, after_reject=0.3)
    bits = bit_rows(model, 6, seed=2)
    share = 0.3 / (1 - 0.9 + 0.3)  # pi = pi 0.9 + (1 - pi) 0.3
    assert model.stationary == pytest.approx(share)
    error = np.sqrt(share * (1 - share) / N_ROWS)
    assert np.all(np.abs(bits.mean(axis=0) - share) < 4.5 * error)
    after = [bits[:, 1:][bits[:, :-1] == before].mean() for before in (False, True)]
    assert after == pytest.approx([0.3, 0.9], abs=0.01)


def test_rows_of_unequal_length_do_not_leak_into_each_other() -> None:
    model = MarkovAcceptance(after_accept=0.95, after_reject=0.05)
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 9, 200)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    u, request_u = rng.random(int(lengths.sum())), rng.random(200)
    together = model.accept_bits(u, starts, request_u)
    alone = [
        model.accept_bits(u[s : s + n], np.array([0]), request_u[i : i + 1])
        for i, (s, n) in enumerate(zip(starts, lengths, strict=True))
    ]
    np.testing.assert_array_equal(together, np.concatenate(alone))


@pytest.mark.parametrize(
    "model", [IidAcceptance(alpha=0.5), MarkovAcceptance(after_accept=0.8, after_reject=0.4),
              BetaAcceptance(a=2.0, b=2.0)]
)  # fmt: skip
def test_accept_bits_leaves_its_uniforms_alone(model: TapeModel) -> None:
    u = np.random.default_rng(0).random(50)
    before = u.copy()
    model.accept_bits(u, np.array([0, 20]), np.array([0.3, 0.9]))
    np.testing.assert_array_equal(u, before)


def test_beta_requests_keep_their_rate_and_it_is_the_quantile_of_their_uniform() -> None:
    model = BetaAcceptance(a=2.0, b=1.0)  # cdf x^2, so the rate of request_u is its square root
    request_u = np.array([0.04, 0.25, 0.81])
    n = 20_000
    u = np.tile((np.arange(n) + 0.5) / n, 3)  # an even grid: shares are exact to 1 / n
    bits = model.accept_bits(u, np.arange(3) * n, request_u).reshape(3, n)
    assert bits.mean(axis=1) == pytest.approx([0.2, 0.5, 0.9], abs=1.0 / n)


def test_beta_pooled_length_is_what_tokens_over_rounds_converge_to() -> None:
    model, k, n_tokens = BetaAcceptance(a=4.0, b=2.0), 4, 400
    lengths = integrate.quad(
        lambda x: stats.beta.pdf(x, 4, 2) / sum(x**j for j in range(k + 1)), 0, 1
    )[0]
    assert model.pooled_acceptance_length(k) == pytest.approx(1.0 / lengths, rel=1e-10)
    bits = bit_rows(model, n_tokens + k + 1, seed=8, n_rows=2000)
    cursor, rounds = np.zeros(2000, dtype=np.int64), np.zeros(2000)
    while (active := cursor < n_tokens).any():
        at = np.minimum(cursor, n_tokens)[:, None] + np.arange(k)
        accepted = np.cumprod(np.take_along_axis(bits, at, axis=1), axis=1).sum(axis=1)
        cursor = np.where(active, cursor + accepted + 1, cursor)
        rounds += active
    pooled = n_tokens * 2000 / rounds.sum()
    relative_error = rounds.std() / rounds.mean() / np.sqrt(2000)
    # A request needs up to one round more than n / E[N]: the end cuts its last one.
    assert pooled == pytest.approx(1.0 / lengths, rel=4.5 * relative_error + 1.0 / rounds.mean())
    assert pooled < model.acceptance_length(k) * (1 - 4.5 * relative_error)
