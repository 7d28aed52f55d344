"""Sampled text has the target's own distribution, which is enumerated; broken rules are found."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

from realrun_kit import (  # noqa: E402
    LoggedDrafter,
    drafter_of,
    execute,
    full_logits,
    make_job,
    make_schedule,
    ragged,
    room,
    table_pair,
    target_of,
    tiny,
    tiny_decoder,
)

from psdsim.errors import InputError  # noqa: E402
from psdsim.schedules.tetris import Tetris  # noqa: E402
from realrun.executor import Job, SamplingRule  # noqa: E402
from realrun.sampling import Uniforms, draw  # noqa: E402
from realrun.session import RunOptions, make_rule  # noqa: E402
from realrun.workers import DeviceName, DraftWork  # noqa: E402

VOCAB, N, K, T = 6, 3000, 3, 0.8
PROMPT = [1, 2]
RNG = np.random.default_rng(3)
# Laws after the last two tokens; the draft's are other ones.
P = RNG.dirichlet(np.full(VOCAB, 0.7), (VOCAB, VOCAB))
Q = RNG.dirichlet(np.full(VOCAB, 0.7), (VOCAB, VOCAB))
P, Q = (0.97 * x + 0.03 / VOCAB for x in (P, Q))


def exact() -> np.ndarray:
    """Return the probability of every three tokens behind the prompt, shape (VOCAB,) * 3."""
    law = np.empty((VOCAB,) * 3)
    for a, b, c in product(range(VOCAB), repeat=3):
        law[a, b, c] = P[PROMPT[0], PROMPT[1], a] * P[PROMPT[1], a, b] * P[a, b, c]
    return law


def sample(name: str, *, seed: int = 1, drafter: Any = None, batch: int = 250, n: int = N) -> Any:
    """Return three tokens of n requests, shape (n, 3), and the run."""
    job = make_job(3, [PROMPT] * n)
    schedule = make_schedule(name, K, batch)
    length = room(job, K)
    target, draft = table_pair(P, Q, schedule.capacity, length, T, seed)
    rule = SamplingRule(seed, length)
    result = execute(schedule, job, target, drafter or draft, rule)
    return np.array(result.outputs), result


def p_value(tokens: np.ndarray) -> float:
    """Return the p-value of a chi-square test; cells that expect fewer than 5 are put together."""
    expected = exact().ravel() * len(tokens)
    seen = np.bincount(np.ravel_multi_index(tuple(tokens.T), (VOCAB,) * 3), minlength=VOCAB**3)
    small = expected < 5
    f_exp = np.append(expected[~small], expected[small].sum())
    f_obs = np.append(seen[~small], seen[small].sum())
    return float(stats.chisquare(f_obs, f_exp).pvalue)


@pytest.mark.parametrize("name", ["ar", "sd", "minedraft", "pearl"])
def test_three_tokens_follow_the_targets_own_law(name: str) -> None:
    tokens, result = sample(name)
    assert p_value(tokens) > 1e-4
    if name != "ar":
        # Drafts are neither all right nor all wrong, so that residuals and bonus tokens count.
        rate = result.steps["n_accepted_tokens"].sum() / result.steps["n_verified_tokens"].sum()
        assert 0.2 < rate < 0.8


@pytest.mark.parametrize("name", ["sd", "pearl"])
def test_proposals_made_for_certain_keep_the_law(name: str) -> None:
    drafter = LoggedDrafter(
        lambda text: (text[-1] + 1) % VOCAB, 500, room(make_job(3, [PROMPT]), K)
    )
    tokens, _ = sample(name, drafter=drafter)
    assert p_value(tokens) > 1e-4


def whole_law(p: Any, q: Any, token: int) -> Any:
    """Residual drawn from the target's law itself."""
    return p


@pytest.mark.parametrize("name", ["sd", "minedraft", "pearl"])
def test_a_wrong_residual_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SamplingRule, "residual", staticmethod(whole_law))
    assert p_value(sample(name)[0]) < 1e-6


def test_a_bonus_token_of_the_draft_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SamplingRule._one

    def bonus(self: SamplingRule, one: Any) -> Any:
        n, token = honest(self, one)
        if n == len(one.drafts.tokens) and token is not None:
            u = self._target.at(one.text.request, len(one.text.tokens) + n)
            before, last = (one.text.tokens + one.drafts.tokens)[-2:]
            token = draw(Q[before, last], u)
        return n, token

    monkeypatch.setattr(SamplingRule, "_one", bonus)
    # With k = 1 many bonus tokens are among the first three.
    monkeypatch.setattr("test_realrun_sampling.K", 1)
    assert p_value(sample("sd")[0]) < 1e-6


def test_the_quotient_upside_down_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(self: SamplingRule, one: Any) -> Any:
        request, position = one.text.request, len(one.text.tokens)
        for i, token in enumerate(one.drafts.tokens):
            p, q = float(one.laws[i][token]), float(one.drafts.laws[i][token])
            if self._accept.at(request, position + i) * p >= q:
                u = self._target.at(request, position + i)
                return i, draw(self.residual(one.laws[i], one.drafts.laws[i], token), u)
        # All accepted: what the honest rule does where it accepts all.
        n = len(one.drafts.tokens)
        return n, draw(one.laws[n], self._target.at(request, position + n))

    monkeypatch.setattr(SamplingRule, "_one", swapped)
    assert p_value(sample("sd")[0]) < 1e-6


def test_uniforms_read_at_a_wrong_place_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # One stream for drafts, tests and residuals: what is drafted then decides what is accepted.
    honest = Uniforms.__init__

    def same(self: Uniforms, seed: int, kind: str, n_positions: int) -> None:
        honest(self, seed, "draft", n_positions)

    monkeypatch.setattr(Uniforms, "__init__", same)
    assert p_value(sample("sd")[0]) < 1e-6


def test_a_drafter_hands_over_the_law_it_drew_from() -> None:
    decoder = tiny_decoder(tiny(layers=2))
    temperature, prompts = 0.7, ragged(3)
    drafter = drafter_of(decoder, 3, 32, temperature)
    ids = np.arange(3)
    tokens, lengths = np.concatenate(prompts), np.array([len(p) for p in prompts])
    counts = np.array([3, 1, 2])
    done = drafter.run(DraftWork(ids + 5, ids, ids * 0, tokens, lengths, counts))
    assert done.tokens.shape == (3, 3)
    assert done.probabilities is not None
    decoder.set_positions(32)
    uniforms = Uniforms(0, "draft", 32)
    for i, prompt in enumerate(prompts):
        text = list(prompt)
        for j in range(counts[i]):
            law = torch.softmax(full_logits(decoder, text)[-1] / temperature, dim=-1).numpy()
            np.testing.assert_allclose(done.probabilities[i, j], law, rtol=1e-4, atol=1e-7)
            assert done.tokens[i, j] == draw(law, uniforms.at(i + 5, len(text)))
            text.append(int(done.tokens[i, j]))
        assert not done.probabilities[i, counts[i] :].any()


@pytest.mark.parametrize("name", ["sd", "minedraft", "pearl"])
def test_the_same_seed_is_the_same_text_in_any_batch(name: str) -> None:
    texts = {batch: sample(name, batch=batch, n=40)[0].tolist() for batch in (1, 3, 40)}
    assert texts[1] == texts[3] == texts[40]
    assert texts[1] != sample(name, n=40, seed=2)[0].tolist()


def test_chain_schedules_sample_the_same_text() -> None:
    assert sample("sd", n=40)[0].tolist() == sample("minedraft", n=40)[0].tolist()


@pytest.mark.parametrize("name", ["sd", "minedraft", "pearl", "pearl-no-pre-verify"])
def test_sampled_texts_end_where_they_should_at_long_drafts(name: str) -> None:
    """Drafts reach beyond the last token; so must uniforms and caches, and no token further."""
    k, batch, here = 8, 2, DeviceName("cpu", 0)
    options = RunOptions(name, k, batch, "", "", here, here, temperature=1.0)
    decoder = tiny_decoder(tiny(layers=1))
    # The draft is the target, so all is accepted: one token is missing when the last round begins.
    outputs = [1, 2, 1 + (k + 1) + 1, 5]
    job: Job = make_job(outputs, [[7] * 3, [8] * 2, [9] * 9, [4]])
    schedule = options.make_schedule()
    length = options.max_length(job)
    target = target_of(decoder, schedule.capacity, length, 1.0)
    draft = drafter_of(decoder, schedule.capacity, length, 1.0)
    result = execute(schedule, job, target, draft, make_rule(options, job, schedule))
    assert result.failure is None
    assert [text.size for text in result.outputs] == outputs
    assert result.tested == result.accepted


def test_a_certain_token_is_drawn_whatever_the_uniform() -> None:
    weights = np.array([0.0, 0.0, 2.0, 0.0])
    assert {draw(weights, u) for u in (0.0, 0.5, 1 - 2**-53)} == {2}
    assert [draw(np.array([0.25, 0.75]), u) for u in (0.0, 0.2499, 0.25, 0.99)] == [0, 0, 1, 1]


def test_the_residual_of_equal_laws_is_the_law() -> None:
    p = np.array([0.25, 0.75], dtype=np.float32)
    assert SamplingRule.residual(p, p, 0) is p
    left = SamplingRule.residual(p, np.array([0.5, 0.5], dtype=np.float32), 0)
    assert left.tolist() == [0.0, 0.25]
    assert SamplingRule.residual(p, None, 1).tolist() == [0.25, 0.0]


# --- drafts chosen by how probable they are ---------------------------------------------------


class Selects(Tetris):
    asks_confidence = True


def selected(extra: int) -> np.ndarray:
    """Return three tokens of N requests where one draft a request, in the mean, is tested."""
    job = make_job(3, [PROMPT] * N)
    schedule = Selects(1, 50, extra=extra)
    length = room(job, schedule.k)
    target, draft = table_pair(P, Q, schedule.capacity, length, T, 1)
    return np.array(execute(schedule, job, target, draft, SamplingRule(1, length)).outputs)


def test_confidences_are_refused_where_text_is_sampled() -> None:
    with pytest.raises(InputError, match="change the law of sampled text; expected greedy"):
        selected(extra=1)


def test_and_rightly_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A selector that sees sampled drafts favours the probable ones; one without a choice can't."""
    monkeypatch.setattr(SamplingRule, "chances", lambda *_: None)
    assert p_value(selected(extra=0)) > 1e-4
    assert p_value(selected(extra=1)) < 1e-9
