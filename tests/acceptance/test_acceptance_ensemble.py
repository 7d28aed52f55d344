"""Several drafters on a hidden two-state text: laws of rounds, couplings, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from psdsim.acceptance import EnsembleAcceptance, IidAcceptance
from psdsim.errors import InputError
from psdsim.seeds import Stream, generator
from tests.methods.method_kit import bound, close, rounds_of

TWO = EnsembleAcceptance(rates=((0.9, 0.2), (0.5, 0.5)), second_share=0.3, mean_run=5.0)


def drawn(model: EnsembleAcceptance, variant: int, n: int = 200_000):
    u = generator(3, 0, Stream.ACCEPTANCE).random(n)
    hidden = generator(3, 0, Stream.HIDDEN).random(n)
    row = np.zeros(1, dtype=np.int64)
    return model.variant_bits(variant, u, row, np.zeros(1), hidden), model.states(row, hidden)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.5])
def test_states_have_their_share_and_their_stretches(share: float) -> None:
    model = TWO.model_copy(update={"second_share": share})
    _, second = drawn(model, 0)
    assert second.mean() == pytest.approx(share, abs=0.02)
    rarer = second if share <= 0.5 else ~second
    n_stretches = np.count_nonzero(rarer[1:] & ~rarer[:-1])
    assert rarer.sum() / n_stretches == pytest.approx(5.0, abs=0.2)


def test_a_better_drafter_accepts_all_that_a_worse_one_does() -> None:
    model = EnsembleAcceptance(rates=((0.6, 0.3), (0.7, 0.4)), second_share=0.4, mean_run=3.0)
    (worse, _), (better, _) = drawn(model, 0), drawn(model, 1)
    assert (better | ~worse).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_one_state_is_independent_drafts(share: float) -> None:
    model = TWO.model_copy(update={"second_share": share})
    alpha = TWO.rates[0][int(share)]
    same = IidAcceptance(alpha=alpha)
    assert model.conditional_rates(4) == pytest.approx(same.conditional_rates(4), rel=1e-12)
    u = generator(3, 0, Stream.ACCEPTANCE).random(1000)
    bits, _ = drawn(model, 0, 1000)
    assert (bits == (u < alpha)).all()


@pytest.mark.parametrize("variant", [0, 1])
@pytest.mark.parametrize("k", [1, 4])
def test_rounds_of_one_drafter_follow_their_stationary_law(variant: int, k: int) -> None:
    from psdsim.schedules.tabed import EnsembleDrafting

    cls = bound(EnsembleDrafting, inputs=2, arms=2, arm=variant)
    accepted = rounds_of(cls, k, TWO, n=200, n_rounds=600, seed=2)[:, 100:]
    rates = TWO.variant_rates(variant, k)
    theory = float(np.cumprod(rates).sum())
    more = [tuple(min(rate + 0.03, 1.0) for rate in row) for row in TWO.rates]
    mutant = TWO.model_copy(update={"rates": tuple(more)}).variant_length(variant, k) - 1.0
    close(accepted, theory, mutant)
    # Not the stationary rate of a position: rounds start where the one before ended.
    if variant == 0:
        assert abs(rates[0] - (0.7 * 0.9 + 0.3 * 0.2)) > 0.01


def test_what_is_no_ensemble_is_refused() -> None:
    with pytest.raises(ValueError, match="mean_run"):
        EnsembleAcceptance(rates=TWO.rates, second_share=0.5, mean_run=0.5)
    with pytest.raises(ValueError, match="rates"):
        EnsembleAcceptance(rates=((0.5, 0.5),), second_share=0.5, mean_run=2.0)
    with pytest.raises(InputError, match="there is no drafter 2"):
        TWO.variant_rates(2, 3)
