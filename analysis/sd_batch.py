"""Serial speculative decoding of a batch: when verifying more tokens takes longer.

Symbols: B requests are verified together, ``k`` drafted tokens each; a target pass takes
t0 + b B (k + 1) and a draft forward d0 + d1 B.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, between, count, give, nonnegative, positive
from analysis._kinds import AssumptionError, Bound
from analysis.rounds import acceptance_length_iid


class NeverBreaksEvenError(AssumptionError):
    """No cost grows with the batch, so there is no break-even batch."""


def effective_cost_ratio(
    n_seqs: ArrayLike,
    *,
    draft_base_s: float,
    draft_per_seq_s: float,
    target_base_s: float,
    per_token_s: float,
) -> FloatArray:
    """Return c_eff(B) = (d0 + (d1 + b) B) / (t0 + b B) for affine step times (note 2.5).

    Batched SD at B is `analysis.sd.speedup` at c_eff: all of Leviathan's results carry over.

    Parameters
    ----------
    n_seqs
        B, > 0.
    draft_base_s, draft_per_seq_s
        d0 and d1, s, >= 0.
    target_base_s, per_token_s
        t0 and b, s, >= 0, not both 0.

    Examples
    --------
    >>> c = effective_cost_ratio([1, 128], draft_base_s=2.0, draft_per_seq_s=0.005,
    ...                          target_base_s=20.0, per_token_s=0.05)
    >>> [round(float(v), 8) for v in c]
    [0.10249377, 0.34242424]
    """
    n = positive("n_seqs", n_seqs)
    d0, d1 = (
        nonnegative("draft_base_s", draft_base_s),
        nonnegative("draft_per_seq_s", draft_per_seq_s),
    )
    t0, b = nonnegative("target_base_s", target_base_s), nonnegative("per_token_s", per_token_s)
    return give((d0 + (d1 + b) * n) / positive("the target pass", t0 + b * n))


def break_even_batch(
    alpha: ArrayLike,
    *,
    draft_base_s: float,
    draft_per_seq_s: float,
    target_base_s: float,
    per_token_s: float,
) -> FloatArray:
    """Return B* = (alpha t0 - d0) / (d1 + b (1 - alpha)): above it no k helps (note 2.5).

    It is where c_eff(B) reaches alpha. A negative value: no k helps at any batch size.

    Parameters
    ----------
    alpha
        In [0, 1].
    draft_base_s, draft_per_seq_s, target_base_s, per_token_s
        As in `effective_cost_ratio`.

    Raises
    ------
    NeverBreaksEvenError
        If nothing grows with the batch, so that no size changes the answer.

    Examples
    --------
    >>> round(float(break_even_batch(0.7, draft_base_s=2.0, draft_per_seq_s=0.005,
    ...                              target_base_s=20.0, per_token_s=0.05)), 6)
    600.0
    """
    a = between("alpha", alpha, 0.0, 1.0)
    d0, d1 = (
        nonnegative("draft_base_s", draft_base_s),
        nonnegative("draft_per_seq_s", draft_per_seq_s),
    )
    t0, b = nonnegative("target_base_s", target_base_s), nonnegative("per_token_s", per_token_s)
    bottom = d1 + b * (1.0 - a)
    if np.any(bottom <= 0.0):
        raise NeverBreaksEvenError(
            "neither the draft forward nor the rejected tokens cost more in a larger batch",
            expected="a cost that grows with the batch",
        )
    return give((a * t0 - d0) / bottom)


def relative_token_time(
    alpha: ArrayLike, k: ArrayLike, draft_to_target: ArrayLike, verify_to_target: ArrayLike
) -> FloatArray:
    """Return T_avg / T_T = (k T_D/T_T + T_V/T_T) / E[N] (MagicDec, arXiv 2408.11049, Eqs. 1-2).

    Below 1 SD is faster than plain decoding of the same batch.

    Parameters
    ----------
    alpha, k
        In [0, 1]; drafted tokens.
    draft_to_target
        One draft forward / one plain decoding pass of the batch, >= 0. With a draft whose KV has a
        fixed budget it falls as context or batch grow.
    verify_to_target
        A pass over k+1 tokens per request / one plain decoding pass; 1 where reading the KV cache
        decides.

    Examples
    --------
    >>> float(relative_token_time(0.5, 1, 0.25, 1.25))
    1.0
    """
    drafting = count("k", k) * nonnegative("draft_to_target", draft_to_target)
    verifying = positive("verify_to_target", verify_to_target)
    return give((drafting + verifying) / acceptance_length_iid(alpha, k))


def long_context_time_ratio(
    n_seqs: ArrayLike,
    context_tokens: ArrayLike,
    n_fed_tokens: ArrayLike,
    *,
    base_s: float,
    per_token_s: float,
    per_kv_token_s: float,
) -> FloatArray:
    """Return T_V / T_T of a pass linear in tokens and in KV read: near 1 for long contexts.

    T = base + per_token B n + per_kv B S; the KV is read once, however many tokens are fed, so
    the ratio tends to 1 as S grows, at any B (the mechanism of MagicDec, section 3; the linear
    form is that of a fit to measured steps, theory note 2.5).

    Parameters
    ----------
    n_seqs, context_tokens
        B, > 0, and S, tokens in the KV cache per request, >= 0.
    n_fed_tokens
        k + 1 for a verification.
    base_s, per_token_s, per_kv_token_s
        s, >= 0.

    Examples
    --------
    >>> float(long_context_time_ratio(1, 0, 5, base_s=1.0, per_token_s=0.25, per_kv_token_s=0.0))
    1.8
    """
    n, s = positive("n_seqs", n_seqs), nonnegative("context_tokens", context_tokens)
    base = nonnegative("base_s", base_s) + nonnegative("per_kv_token_s", per_kv_token_s) * n * s
    token = nonnegative("per_token_s", per_token_s) * n
    plain = positive("a plain pass", base + token)
    return give((base + token * count("n_fed_tokens", n_fed_tokens, 1)) / plain)


def long_context_speedup_limit(alpha: ArrayLike, k: ArrayLike) -> Bound:
    """Return E[N], which the speedup tends to and does not pass as the context grows.

    With S to infinity T_V/T_T tends to 1 and, while the draft's KV budget stays fixed, T_D/T_T to
    0 in `relative_token_time` (MagicDec, section 3).

    Parameters
    ----------
    alpha, k
        As above.

    Examples
    --------
    >>> long_context_speedup_limit(0.5, 1).value
    1.5
    """
    value = np.asarray(acceptance_length_iid(alpha, k))
    return Bound(float(value) if value.ndim == 0 else value, "upper")


def touched_experts(n_experts: ArrayLike, n_active: ArrayLike, n_tokens: ArrayLike) -> FloatArray:
    """Return E (1 - (1 - K/E)^t), experts that t tokens touch (MoESD; theory note 2.5).

    Each token is routed to K of E experts, uniformly and independently.

    Parameters
    ----------
    n_experts, n_active
        E >= 1 and K in 0..E.
    n_tokens
        t >= 0.

    Examples
    --------
    >>> round(float(touched_experts(64, 8, 5)), 6)
    31.173828
    """
    experts, active = count("n_experts", n_experts, 1), count("n_active", n_active)
    if np.any(active > experts):
        raise AssumptionError("n_active is above n_experts", expected="at most all experts")
    missed = (1.0 - active / experts) ** count("n_tokens", n_tokens)
    return give(experts * (1.0 - missed))


def target_efficiency(plain_time_s: ArrayLike, verify_time_s: ArrayLike) -> FloatArray:
    """Return T_T(B, 1) / T_T(B, k), what widening a pass leaves of its speed (MoESD).

    Parameters
    ----------
    plain_time_s, verify_time_s
        A pass over 1 and over k+1 tokens per request, s, > 0.

    Examples
    --------
    >>> float(target_efficiency(1.0, 1.25))
    0.8
    """
    return give(positive("plain_time_s", plain_time_s) / positive("verify_time_s", verify_time_s))


def target_efficiency_moe(
    n_seqs: ArrayLike,
    k: ArrayLike,
    *,
    n_experts: int,
    n_active: int,
    base_s: float,
    per_expert_s: float,
) -> FloatArray:
    """Return `target_efficiency` of a pass that loads every touched expert once.

    T(t) = base + per_expert N(t) with N from `touched_experts`: at small B a wider pass touches
    more experts, at large B all are touched anyway, so the efficiency falls and then rises with
    B (MoESD's finding; the two-term time is our simplification of it).

    Parameters
    ----------
    n_seqs, k
        B >= 1 and drafted tokens, >= 0.
    n_experts, n_active, base_s, per_expert_s
        As in `touched_experts`; s, >= 0.

    Examples
    --------
    >>> round(float(target_efficiency_moe(1, 1, n_experts=2, n_active=1, base_s=0.0,
    ...                                   per_expert_s=1.0)), 9)      # 1 / 1.5
    0.666666667
    """
    n = count("n_seqs", n_seqs, 1)
    fixed, each = nonnegative("base_s", base_s), nonnegative("per_expert_s", per_expert_s)
    plain = fixed + each * touched_experts(n_experts, n_active, n)
    wide = fixed + each * touched_experts(n_experts, n_active, n * (count("k", k) + 1))
    return target_efficiency(plain, wide)


def parallel_drafter_speedup(
    acceptance_length: ArrayLike, draft_to_target: ArrayLike
) -> FloatArray:
    """Return tau / (1 + rho): one drafting pass makes all k tokens (MTP, block diffusion).

    The form behind PEFT-BD (arXiv 2607.12422); Medusa's rate / overhead is the same with the
    overhead for 1 + rho.

    Parameters
    ----------
    acceptance_length
        tau, tokens per target pass, >= 1.
    draft_to_target
        rho, the drafting pass / the target pass, >= 0; near 1 the drafter eats its own gain.

    Examples
    --------
    >>> float(parallel_drafter_speedup(3.0, 0.5))
    2.0
    """
    tau = between("acceptance_length", acceptance_length, 1.0, 1e9)
    return give(tau / (1.0 + nonnegative("draft_to_target", draft_to_target)))


def break_even_acceptance_length(draft_to_target: ArrayLike) -> FloatArray:
    """Return 1 + rho, the acceptance length above which a parallel drafter pays.

    Parameters
    ----------
    draft_to_target
        rho, >= 0.

    Examples
    --------
    >>> float(break_even_acceptance_length(0.5))
    1.5
    """
    return give(1.0 + nonnegative("draft_to_target", draft_to_target))
