"""More entries of the catalogue: variants, bounds, finite batches, groups."""

from __future__ import annotations

import numpy as np

from analysis import dsi, pearl, pipespec, psd, sd, sd_batch, specbranch
from analysis.catalogue import Formula, Inputs, NotApplicable
from analysis.finite import mean_overshoot
from analysis.finite_batch import batch_imbalance, static_batch_efficiency
from analysis.finite_law import rounds_survival
from analysis.psd_continuous import continuous_ratio
from analysis.stages_cyclic import (
    cyclic_throughput_deterministic,
    cyclic_throughput_exponential,
    round_period,
    time_per_token,
)

_IID = "drafts accepted independently with one rate"
_CONST = "verifying k+1 rows costs what decoding one does"


def _efficiency(i: Inputs) -> float:
    lengths = np.full(max(1, round(i.n_seqs)), i.n_tokens)
    return static_batch_efficiency(lengths, i.tokens_pmf)


def _imbalance(i: Inputs) -> float:
    survival = rounds_survival(i.n_tokens, i.tokens_pmf)
    # The maximum over a half of m requests: P(max > r) = 1 - (1 - P(R > r))^m.
    half = -np.expm1(i.n_seqs * np.log1p(-np.minimum(survival, 1.0 - 1e-16)))
    return batch_imbalance(half, half)


def _continuous(i: Inputs) -> float:
    draft_s, verify_s = i.overlapping
    share = i.model.mean_accepted(i.k) / i.k
    if share >= 1.0:
        raise NotApplicable("every draft is accepted, however long the drafting takes")
    return float(continuous_ratio(-np.log1p(-share) * verify_s / draft_s))


MORE: tuple[Formula, ...] = (
    Formula(
        "oracle_speedup", "S_oracle", "serial SD that drafts exactly until the first miss",
        "1 / [(1 - a) + c a]",
        (_IID, _CONST),
        "theory note 1.3",
        lambda i: float(sd.oracle_speedup(i.alpha, i.draft_cost_ratio)),
    ),
    Formula(
        "wasted_drafts", "waste/token", "drafted tokens thrown away per emitted token, serial SD",
        "(k - E[L]) / E[N]",
        (_IID,),
        "theory note 1.4",
        lambda i: float(sd.wasted_drafts_per_token(i.alpha, i.k)),
    ),
    Formula(
        "parallel_drafter_speedup", "tau/(1+rho)", "if one drafting pass made all k tokens",
        "tau / (1 + rho), rho = one draft forward / target pass",
        (_CONST, "the parallel drafter accepts as the present one does"),
        "PEFT-BD; theory note 1.3",
        lambda i: float(
            sd_batch.parallel_drafter_speedup(i.model.acceptance_length(i.k), i.draft_cost_ratio)
        ),
    ),
    Formula(
        "target_efficiency", "V1/Vk", "what widening a pass to k+1 rows leaves of its speed",
        "T_T(B, 1) / T_T(B, k)",
        ("step times at the full batch",),
        "MoESD (arXiv 2505.19645)",
        lambda i: float(sd_batch.target_efficiency(i.decode_s, i.verify_s)),
    ),
    Formula(
        "pearl_no_pre_verify", "R_P, no pre", "PEARL without pre-verify, tokens per step",
        "1 / [2 (1 - a) + a^(k+1) (1 - a)/(1 - a^k)]",
        (_IID,),
        "theory note 3.5",
        lambda i: float(pearl.tokens_per_step_no_pre_verify(i.alpha, i.k)),
    ),
    Formula(
        "pearl_no_post_verify", "R_P, no post", "PEARL without post-verify, tokens per step",
        "[1 + a (1 - a^k)/(1 - a)] / (1 + a)",
        (_IID,),
        "theory note 3.5",
        lambda i: float(pearl.tokens_per_step_no_post_verify(i.alpha, i.k)),
    ),
    Formula(
        "pearl_best_k", "k*_P", "draft length with PEARL's largest speedup",
        "floor or ceiling of 1/c without sync",
        (_IID, _CONST),
        "PEARL (arXiv 2408.11850), heuristic; proved for the chain",
        lambda i: float(pearl.best_k(i.alpha, i.draft_cost_ratio, i.sync_s / i.decode_s)),
    ),
    Formula(
        "pipespec_tokens_per_step", "R_PS", "PipeSpec with two models, tokens per step",
        "(1 - rho) + rho (1 - a^(k+1))/(1 - a), rho = a/(1 - a^(k+1) + a)",
        (_IID,),
        "PipeSpec, Eqs. 3-6; PEARL's chain at k + 1",
        lambda i: float(pipespec.tokens_per_step(i.alpha, i.k)),
    ),
    Formula(
        "dsi_speedup_limit", "S_DSI", "DSI over plain decoding, long outputs, enough targets",
        "1 / [(1 - a) + a c]",
        (_IID, "target servers without limit"),
        "DSI (arXiv 2405.14105), Proposition 1",
        lambda i: float(dsi.speedup_limit(i.alpha, i.draft_forward_s, i.decode_s)),
    ),
    Formula(
        "dsi_servers", "SP", "target servers that DSI needs at lookahead k",
        "ceil(t_target / (k t_draft))",
        ("bounded forward times",),
        "DSI (arXiv 2405.14105), Eq. 1",
        lambda i: float(dsi.servers_needed(i.draft_forward_s, i.decode_s, max(i.k, 1))),
    ),
    Formula(
        "specbranch_printed", "S_SB", "SpecBranch's formula as its paper prints it",
        "c / T, T = 2 max(k, c) / [(1 + a^k) a (1 - a^k)/(1 - a)]",
        (_IID, "counts accepted drafts without the corrected token"),
        "SpecBranch; theory note 3.5",
        lambda i: specbranch.printed_speedup(i.alpha, i.k, 1.0 / i.draft_cost_ratio),
    ),
    Formula(
        "minedraft_round_period", "T_round", "time between two verifications of a request, s",
        "max(D + V, 2 max(D, V)): latency per request does not halve",
        ("two groups", "no overheads"),
        "theory note 3.2.3",
        lambda i: float(round_period(*i.overlapping, 2)),
    ),
    Formula(
        "minedraft_time_per_token", "TPOT_PSD", "MineDraft's mean time per output token, s",
        "2 max(D, V) / E[N]",
        ("two groups", "no overheads"),
        "theory notes 3.2.3 and 4.3",
        lambda i: float(
            time_per_token(
                round_period(*i.overlapping, 2), i.model.acceptance_length(i.k)
            )
        ),
    ),
    Formula(
        "minedraft_last_hidden_k", "k_x", "k up to which drafting stays hidden",
        "V0 / (t_d - V1), a target pass being V0 + V1 k",
        ("step times linear in k",),
        "theory note 3.2.9",
        lambda i: float(
            psd.last_hidden_k(
                i.draft_forward_s, i.decode_s, max(i.verify_s - i.decode_s, 0.0) / max(i.k, 1)
            )
        ),
    ),
    Formula(
        "three_groups", "X_3/X_2", "gain of a third sub-batch, constant times",
        "min(3/(D + V), 1/max(D, V)) / min(2/(D + V), 1/max(D, V))",
        ("groups as large as the present ones",),
        "theory note 4.1",
        lambda i: float(
            cyclic_throughput_deterministic(*i.overlapping, 3)
            / cyclic_throughput_deterministic(*i.overlapping, 2)
        ),
    ),
    Formula(
        "exponential_two_groups", "X_exp/X", "throughput left if both phases were exponential",
        "X_2 of a cyclic queue / 1 over max(D, V)",
        ("exponential phases of the same means",),
        "Gordon and Newell 1967; theory note 4.1",
        lambda i: float(
            cyclic_throughput_exponential(*i.overlapping, 2)
            / cyclic_throughput_deterministic(*i.overlapping, 2)
        ),
    ),
    Formula(
        "continuous_ratio", "R(x)", "MineDraft's continuous model with f(D) = this E[L]/k",
        "R(x) = e^s (1 - e^-x)/x, x = -ln(1 - E[L]/k) V/D",
        ("accepted share 1 - exp(-a t) of drafting time t",),
        "theory note 5.4",
        _continuous,
    ),
    Formula(
        "mean_overshoot", "overshoot", "tokens of the last block beyond the stop",
        "E[N] E[R_n] - n",
        ("independent rounds",),
        "theory note 4.4 (Wald)",
        lambda i: mean_overshoot(i.n_tokens, i.tokens_pmf),
    ),
    Formula(
        "static_batch_efficiency", "eff", "share of slots that work in a static batch",
        "E[R_n] / E[max R_n]",
        ("independent rounds", "nobody admitted meanwhile"),
        "theory note 4.5",
        _efficiency,
    ),
    Formula(
        "static_halves_imbalance", "E|A-B|", "rounds that one static half runs alone",
        "sum_r P(A <= r) P(B > r) + P(A > r) P(B <= r)",
        ("independent rounds", "two static halves of m requests"),
        "theory note 3.2.10",
        _imbalance,
    ),
)  # fmt: skip
"""Entries behind the basic ones."""
