"""The law of rounds for n tokens: enumeration, convolution, recursion and transform agree."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import finite, finite_batch, finite_law
from analysis.rounds import acceptance_length_iid, accepted_pmf_iid, pmf_mean, tokens_pmf
from psdsim.errors import InputError

MODERATE = settings(max_examples=50, deadline=None)


def law(alpha: float, k: int) -> np.ndarray:
    return tokens_pmf(accepted_pmf_iid(alpha, k))


@st.composite
def laws(draw: st.DrawFn) -> np.ndarray:
    weights = draw(
        st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6).filter(lambda w: sum(w) > 0.1)
    )
    found = np.array([0.0, *weights])
    return found / found.sum()


# T-62 to T-64 with how far the printed value is from the exact one, in units of the last digit
# (seventh place): half a unit is correct rounding. T-64's mean is cut (25.68870226), and T-63 is
# inexact in the note: 76.61918884 and 17.44792026. `test_moments_are_the_exact_rationals` decides.
@pytest.mark.parametrize(
    "alpha,k,n,mean,variance,emitted,mean_units,variance_units",
    [
        (0.8, 4, 128, 38.5420827, 8.7880245, 129.56307, 0.5, 0.5),
        (0.8, 4, 256, 76.6191889, 17.4479201, 257.56307, 0.6, 1.6),
        (0.7, 3, 64, 25.6887022, 6.1397267, 65.069483, 0.7, 0.5),
    ],
)
def test_published_moments(
    alpha: float,
    k: int,
    n: int,
    mean: float,
    variance: float,
    emitted: float,
    mean_units: float,
    variance_units: float,
) -> None:
    pmf = law(alpha, k)
    mean_error, variance_error = 1e-7 * mean_units, 1e-7 * variance_units
    assert finite.expected_rounds(n, pmf) == pytest.approx(mean, abs=mean_error)
    assert finite.variance_rounds(n, pmf) == pytest.approx(variance, abs=variance_error)
    assert n + finite.mean_overshoot(n, pmf) == pytest.approx(emitted, abs=5.1e-6)
    asymptotic = finite.expected_rounds_asymptotic(n, pmf).value
    assert asymptotic == pytest.approx(mean, abs=mean_error)


@pytest.mark.parametrize(
    "alpha,k,n", [(Fraction(4, 5), 4, 128), (Fraction(4, 5), 4, 256), (Fraction(7, 10), 3, 64)]
)
def test_moments_are_the_exact_rationals(alpha: Fraction, k: int, n: int) -> None:
    # E[R] and E[R^2] by conditioning on the first round, without any rounding.
    pmf = [Fraction(0), *((1 - alpha) * alpha**j for j in range(k)), alpha**k]
    first, second = [Fraction(0)] * (n + 1), [Fraction(0)] * (n + 1)
    for m in range(1, n + 1):
        steps = range(1, min(k + 1, m) + 1)
        first[m] = 1 + sum(pmf[j] * first[m - j] for j in steps)
        second[m] = 1 + sum(pmf[j] * (2 * first[m - j] + second[m - j]) for j in steps)
    found = law(float(alpha), k)
    variance = second[n] - first[n] ** 2
    assert finite.expected_rounds(n, found) == pytest.approx(float(first[n]), rel=1e-12)
    assert finite.variance_rounds(n, found) == pytest.approx(float(variance), rel=1e-11)


def test_published_tiny_law() -> None:
    # T-65.
    found = finite_law.rounds_pmf(5, law(0.6, 2))
    assert found == pytest.approx([0.0, 0.0, 0.3024, 0.5184, 0.1536, 0.0256], abs=1e-12)


@pytest.mark.parametrize(
    "alpha,k,n,expected",
    [
        (0.8, 4, 128, (40.203671, 42.924753, 45.110208)),
        (0.8, 4, 256, (78.968102, 82.736686, 85.711757)),
        (0.7, 3, 64, (27.074882, 29.350989, 31.178221)),
    ],
)
def test_published_batch_maxima(alpha: float, k: int, n: int, expected: tuple[float, ...]) -> None:
    # T-66.
    found = [finite_batch.expected_max_rounds(n, law(alpha, k), b) for b in (2, 8, 32)]
    assert found == pytest.approx(expected, abs=5.1e-7)


def test_published_batch_efficiency_and_finite_speedup() -> None:
    # T-66 and note 4.3: n/(E[R] (k c + 1)) = 2.386571.
    pmf = law(0.8, 4)
    found = [finite_batch.static_batch_efficiency([256] * b, pmf) for b in (8, 32)]
    assert found == pytest.approx([0.92606065, 0.89391690], abs=5.1e-9)
    speedup = finite.effective_tokens_per_round(256, pmf) / 1.4
    assert speedup == pytest.approx(2.386571, abs=5e-7)


def enumerate_rounds(n: int, pmf: np.ndarray) -> np.ndarray:
    """Walk every sequence of rounds in exact fractions; return P(R = r), r = 0..n."""
    exact = [Fraction(float(p)) for p in pmf]
    total = sum(exact)
    out = [Fraction(0)] * (n + 1)

    def walk(done: int, r: int, weight: Fraction) -> None:
        if done >= n:
            out[r] += weight
            return
        for tokens, p in enumerate(exact):
            if p:
                walk(done + tokens, r + 1, weight * p / total)

    walk(0, 0, Fraction(1))
    return np.array([float(p) for p in out])


@settings(max_examples=25, deadline=None)
@given(laws(), st.integers(1, 6))
def test_law_is_the_enumeration(pmf: np.ndarray, n: int) -> None:
    brute = enumerate_rounds(n, pmf)
    r = np.arange(n + 1)
    assert finite_law.rounds_pmf(n, pmf) == pytest.approx(brute, abs=1e-12)
    assert finite.expected_rounds(n, pmf) == pytest.approx(brute @ r)
    assert finite.variance_rounds(n, pmf) == pytest.approx(brute @ (r - brute @ r) ** 2, abs=1e-10)


@MODERATE
@given(laws(), st.integers(1, 400))
def test_transform_is_the_convolution(pmf: np.ndarray, n: int) -> None:
    fast = finite_law.rounds_survival(n, pmf)
    slow = finite_law.rounds_survival_by_convolution(n, pmf)
    assert np.abs(fast - slow).max() < 1e-13
    assert np.all(np.diff(fast) <= 0.0)
    assert fast.sum() == pytest.approx(finite.expected_rounds(n, pmf), rel=1e-12)
    second = (2 * np.arange(n + 1) + 1) @ fast
    assert second - fast.sum() ** 2 == pytest.approx(finite.variance_rounds(n, pmf), abs=1e-7)


@pytest.mark.parametrize("alpha,k,n", [(0.8, 16, 10_000), (0.02, 16, 10_000), (0.95, 8, 100_000)])
def test_long_outputs_agree_with_the_recursions(alpha: float, k: int, n: int) -> None:
    pmf = law(alpha, k)
    survival = finite_law.rounds_survival(n, pmf)
    r = np.arange(n + 1)
    mean = survival.sum()
    assert mean == pytest.approx(finite.expected_rounds(n, pmf), rel=1e-11)
    assert mean == pytest.approx(finite.expected_rounds_asymptotic(n, pmf).value, rel=1e-11)
    # Centred, so that n^2 doesn't hide the variance.
    variance = -np.diff(np.append(survival, 0.0)) @ (r + 1 - mean) ** 2
    assert finite.variance_rounds(n, pmf) == pytest.approx(variance, rel=1e-7)
    assert finite.variance_rounds_asymptotic(n, pmf).value == pytest.approx(variance, rel=1e-3)


def test_the_window_keeps_what_lies_inside() -> None:
    # A wide law at small n, where a normal window would be too narrow.
    pmf = np.zeros(60)
    pmf[1], pmf[59] = 0.97, 0.03
    fast = finite_law.rounds_survival(2000, pmf)
    slow = finite_law.rounds_survival_by_convolution(2000, pmf)
    assert np.abs(fast - slow).max() < 1e-13


def test_certain_rounds() -> None:
    survival = finite_law.rounds_survival(7, [0.0, 0.0, 0.0, 1.0])
    assert survival == pytest.approx([1.0] * 3 + [0.0] * 5, abs=1e-15)
    assert finite.expected_rounds(7, [0.0, 0.0, 0.0, 1.0]) == 3.0
    assert finite.variance_rounds(7, [0.0, 0.0, 0.0, 1.0]) == pytest.approx(0.0, abs=1e-12)
    assert finite.overshoot_pmf(7, [0.0, 0.0, 0.0, 1.0]).tolist() == [0.0, 0.0, 1.0]
    assert finite.variance_rounds(0, [0.0, 1.0]) == 0.0


@MODERATE
@given(laws(), st.integers(1, 60))
def test_overshoot_law(pmf: np.ndarray, n: int) -> None:
    found = finite.overshoot_pmf(n, pmf)
    assert found.sum() == pytest.approx(1.0)
    # Wald's identity is another route to its mean.
    assert pmf_mean(found / found.sum()) == pytest.approx(finite.mean_overshoot(n, pmf), abs=1e-9)


@MODERATE
@given(laws(), st.integers(1, 40), st.integers(1, 40))
def test_rounds_are_subadditive_and_rise(pmf: np.ndarray, n: int, m: int) -> None:
    mean = finite.expected_rounds_upto(n + m, pmf)
    assert mean[n + m] <= mean[n] + mean[m] + 1e-9
    assert np.all(np.diff(mean) >= -1e-12)
    # The stop clips, so that fewer tokens per round count than are emitted.
    assert finite.effective_tokens_per_round(n, pmf) <= pmf_mean(pmf) * (1 + 1e-12)


def test_batch_maximum_is_the_enumeration() -> None:
    pmf = law(0.6, 2)
    lengths = [3, 5, 5]
    each = [enumerate_rounds(n, pmf) for n in lengths]
    brute = sum(
        each[0][a] * each[1][b] * each[2][c] * max(a, b, c)
        for a, b, c in itertools.product(range(4), range(6), range(6))
    )
    assert finite_batch.expected_max_rounds_unequal(lengths, pmf) == pytest.approx(float(brute))
    mean = np.mean([finite.expected_rounds(n, pmf) for n in lengths])
    assert finite_batch.static_batch_efficiency(lengths, pmf) == pytest.approx(mean / float(brute))


@MODERATE
@given(st.floats(0.05, 0.95), st.integers(1, 6), st.integers(1, 80), st.integers(1, 30))
def test_batch_maximum_limits(alpha: float, k: int, n: int, b: int) -> None:
    pmf = law(alpha, k)
    mean = finite.expected_rounds(n, pmf)
    one, more = (finite_batch.expected_max_rounds(n, pmf, size) for size in (b, b + 1))
    assert finite_batch.expected_max_rounds(n, pmf, 1) == pytest.approx(mean)
    assert mean - 1e-9 <= one <= more + 1e-9 <= n + 2e-9
    assert finite_batch.expected_excess_rounds(n, pmf, b) == pytest.approx(one - mean, abs=1e-12)
    # A shorter companion cannot slow a batch as much as an equal one does.
    mixed = finite_batch.expected_max_rounds_unequal([n] * b + [max(1, n // 2)], pmf)
    assert one - 1e-9 <= mixed <= more + 1e-9


def event_makespan(rounds_a: int, rounds_b: int, draft: float, verify: float) -> float:
    """Alternate drafts and target passes of two batches, one server each; A first."""
    left, ready = [rounds_a, rounds_b], [0.0, 0.0]
    drafter = target = end = 0.0
    turn = 0
    while any(left):
        if not left[turn]:
            turn = 1 - turn
        drafted = max(drafter, ready[turn]) + draft
        target = max(target, drafted) + verify
        # With a sync point the next draft starts when the pass that it hides behind does.
        drafter = target - verify
        ready[turn] = end = target
        left[turn] -= 1
        turn = 1 - turn
    return end


@MODERATE
@given(
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(1, 64).map(lambda i: i / 8),
    st.integers(1, 64).map(lambda i: i / 8),
)
def test_pair_makespan_is_the_event_list(a: int, b: int, draft: float, verify: float) -> None:
    assert finite_batch.pair_makespan(a, b, draft, verify) == event_makespan(a, b, draft, verify)


def test_published_makespans() -> None:
    # T-40, the cases of two batches and of one.
    found = finite_batch.pair_makespan([10, 10, 10, 1], [10, 10, 0, 1], [8, 25, 8, 8], 20.0)
    assert found.tolist() == [408.0, 520.0, 280.0, 48.0]


def test_pair_of_batches_is_the_enumeration() -> None:
    pmf = law(0.6, 2)
    a_law, b_law = enumerate_rounds(5, pmf), enumerate_rounds(4, pmf)
    a, b = finite_law.rounds_survival(5, pmf), finite_law.rounds_survival(4, pmf)
    pairs = list(itertools.product(range(6), range(5)))
    weight = np.array([a_law[i] * b_law[j] for i, j in pairs])
    gap = np.array([abs(i - j) for i, j in pairs])
    both = np.array([i + j for i, j in pairs])
    span = np.array([float(finite_batch.pair_makespan(i, j, 3.0, 5.0)) for i, j in pairs])
    assert finite_batch.batch_imbalance(a, b) == pytest.approx(weight @ gap)
    assert finite_batch.tail_share(a, b) == pytest.approx(weight @ gap / (weight @ both))
    assert finite_batch.expected_pair_makespan(a, b, 3.0, 5.0) == pytest.approx(weight @ span)


def test_imbalance_fades_with_length() -> None:
    pmf = law(0.8, 4)
    shares = []
    for n in (16, 64, 256, 1024):
        survival = finite_batch.batch_rounds_survival([n] * 8, pmf)
        shares.append(finite_batch.tail_share(survival, survival))
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] > 0.0


def test_renewal_probabilities_tend_to_one_over_the_mean() -> None:
    pmf = law(0.8, 4)
    limit = 1.0 / float(acceptance_length_iid(0.8, 4))
    assert finite.renewal_probabilities(400, pmf)[-1] == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: finite.expected_rounds(5, [0.5, 0.5]), r"P\(0 tokens\) is 0.5"),
        (lambda: finite_law.rounds_survival(0, [0.0, 1.0]), "n_tokens is 0"),
        (lambda: finite.expected_rounds(5, [0.0, 0.7]), "tokens_pmf sums to 0.7"),
        (lambda: finite_batch.batch_rounds_survival([], [0.0, 1.0]), "one length per request"),
        (lambda: finite_batch.batch_imbalance([1.0, 0.5], [1.0, 0.0]), "doesn't fall to 0"),
        (
            lambda: finite_batch.expected_pair_makespan([0.5, 0.0], [1.0, 0.0], 1.0, 1.0),
            "at least one round",
        ),
    ],
)
def test_bad_input_is_told(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_lattice_law_has_no_asymptote() -> None:
    with pytest.raises(finite.LatticeError, match="multiple"):
        finite.expected_rounds_asymptotic(9, [0.0, 0.0, 0.5, 0.0, 0.5])
