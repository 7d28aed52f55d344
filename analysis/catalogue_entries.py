"""The entries of the catalogue: rounds, serial SD, parallel SD, PEARL, finite outputs, queues."""

from __future__ import annotations

from analysis import finite, pearl, psd, queues, sd, stages
from analysis.catalogue import Formula, Inputs, NotApplicable
from analysis.finite_batch import expected_max_rounds

_IID = "drafts accepted independently with one rate"
_FULL = "full batches, step times at their means, prefill and tail left out"
_CONST = "verifying k+1 rows costs what decoding one does"


def _serial_throughput(i: Inputs) -> float:
    tokens = i.model.acceptance_length(i.k)
    return float(i.n_replicas * sd.throughput(i.n_seqs, tokens, i.serial_step_s))


def _parallel_step(i: Inputs) -> float:
    return float(psd.step_time(*i.overlapping, i.step_overhead_s(i.n_seqs), i.sync_s))


def _per_gpu(i: Inputs) -> float:
    i.serial_drafts_on_target()
    return float(psd.speedup_per_gpu(*i.overlapping, i.n_target_gpus, i.n_draft_gpus))


def _load(i: Inputs) -> float:
    if i.arrival_rate is None:
        raise NotApplicable("arrivals are not open")
    rounds = finite.expected_rounds(i.n_tokens, i.tokens_pmf) if i.k else float(i.n_tokens)
    return float(
        queues.utilisation(i.arrival_rate / i.n_replicas, rounds * i.serial_step_s / i.n_seqs)
    )


FORMULAS: tuple[Formula, ...] = (
    Formula(
        "acceptance_length", "E[N]", "tokens per round of chain drafts, bonus counted",
        "E[N] = 1 + sum_j P(L >= j); i.i.d.: (1 - a^(k+1))/(1 - a)",
        ("stationary rounds",),
        "Leviathan et al. 2023, Eq. 1; per position: DSpark, EAGLE-2",
        lambda i: i.model.acceptance_length(i.k),
    ),
    Formula(
        "accepted_variance", "Var[L]", "variance of accepted drafts per round, tokens^2",
        "Var[L] = sum_j (2j - 1) P(L >= j) - E[L]^2",
        ("stationary rounds",),
        "theory note 1.2",
        lambda i: i.model.var_accepted(i.k),
    ),
    Formula(
        "acceptance_rate", "acc./drafted", "accepted / drafted tokens (vLLM's figure)",
        "E[L] / k",
        ("chain drafts, all verified",),
        "theory note 1.5",
        lambda i: i.model.mean_accepted(i.k) / i.k,
    ),
    Formula(
        "pooled_acceptance_length", "tau", "tokens / rounds over equally long requests",
        "1 / E[1 / E[N | request]]: the harmonic mean",
        ("requests of one output length",),
        "theory note 2.2c",
        lambda i: i.model.pooled_acceptance_length(i.k),
    ),
    Formula(
        "speedup", "S", "serial SD / plain decoding, batch 1 theory",
        "S = E[N] / (k c + 1), c = draft forward / target pass",
        (_IID, _CONST),
        "Leviathan et al. 2023, Theorem 3.8",
        lambda i: float(sd.speedup(i.alpha, i.k, i.draft_cost_ratio)),
    ),
    Formula(
        "break_even_alpha", "alpha*", "rate above which some k helps serial SD",
        "alpha* = c",
        (_IID, _CONST),
        "Leviathan et al. 2023, Corollary 3.9",
        lambda i: float(sd.break_even_alpha(i.draft_cost_ratio)),
    ),
    Formula(
        "best_k", "k*", "draft length with the largest serial speedup",
        "argmax_k S(alpha, k, c) over whole numbers",
        (_IID, _CONST),
        "Leviathan et al. 2023, Theorem 3.8, by search",
        lambda i: float(sd.best_k(i.alpha, i.draft_cost_ratio)),
    ),
    Formula(
        "best_k_continuous", "k~", "real draft length with the largest serial speedup",
        "k~ = (y - 1)/A - 1/c, A = -ln alpha, y - ln y = 1 + A/c - A, y > 1",
        (_IID, _CONST),
        "theory note 1.3 (Lambert W)",
        lambda i: float(sd.best_k_continuous(i.alpha, i.draft_cost_ratio)),
    ),
    Formula(
        "sd_step_time", "T_SD", "mean step of serial SD, s",
        "T_SD = overhead + D + V (+ sync where it drafts on a device of its own)",
        (_FULL,),
        "by definition",
        lambda i: i.serial_step_s,
    ),
    Formula(
        "sd_throughput", "X_SD", "steady throughput of serial SD, tokens/s",
        "X_SD = m E[N] / T_SD",
        (_FULL,),
        "Leviathan et al. 2023, Eq. 1",
        _serial_throughput,
    ),
    Formula(
        "minedraft_step_time", "T_PSD", "mean step of MineDraft, s",
        "T_PSD = overhead + max(D, V) + sync",
        (_FULL, "no jitter"),
        "MineDraft (arXiv 2603.18016)",
        _parallel_step,
    ),
    Formula(
        "minedraft_throughput", "X_PSD", "steady throughput of MineDraft, tokens/s",
        "X_PSD = m E[N] / T_PSD",
        (_FULL, "no jitter", "two full sub-batches of m"),
        "MineDraft (arXiv 2603.18016)",
        lambda i: i.n_replicas * i.n_seqs * i.model.acceptance_length(i.k) / _parallel_step(i),
    ),
    Formula(
        "minedraft_speedup", "R", "MineDraft / serial SD, same requests per step",
        "R = (D + V) / max(D, V), at most 2",
        ("no overheads", "MineDraft holds 2m requests"),
        "MineDraft (arXiv 2603.18016); theory note 3.2.1",
        lambda i: float(psd.speedup_over_sd(*i.overlapping)),
    ),
    Formula(
        "minedraft_speedup_per_gpu", "R G/(G+g)", "MineDraft / serial SD per GPU",
        "R G / (G + g)",
        ("no overheads", "SD's drafter shares the target's G GPUs"),
        "theory note 3.2.5",
        _per_gpu,
    ),
    Formula(
        "minedraft_speedup_equal_concurrency",
        "R_n", "MineDraft / serial SD, same requests in flight",
        "R_n = (D + V) / (2 max(D', V')), D' and V' of half the batch",
        ("no overheads",),
        "theory note 3.2.2",
        lambda i: float(
            psd.speedup_at_equal_concurrency(*i.overlapping, i.half_draft_s, i.half_verify_s)
        ),
    ),
    Formula(
        "stage_maximum", "E[max]", "mean of the slower phase under lognormal jitter, s",
        "E[max(D, V)] = E[D] Phi(.) + E[V] Phi(.)",
        ("independent lognormal phases",),
        "size-biased lognormals; theory note 4.1",
        lambda i: stages.expected_max(
            i.overlapping[0], i.draft_cv, i.overlapping[1], i.verify_cv
        ),
    ),
    Formula(
        "pearl_tokens_per_step", "R_P", "PEARL's tokens per step and request",
        "R_P = (1 - a^k) / [(1 - a)(1 + a - a^k)]",
        (_IID,),
        "chain of PEARL (arXiv 2408.11850), derived",
        lambda i: float(pearl.tokens_per_step(i.alpha, i.k)),
    ),
    Formula(
        "pearl_pre_verify_share", "pi_pre", "share of PEARL's steps in pre-verify",
        "pi_pre = (1 - a^k) / (1 + a - a^k)",
        (_IID,),
        "chain of PEARL (arXiv 2408.11850), derived",
        lambda i: float(pearl.pre_verify_share(i.alpha, i.k)),
    ),
    Formula(
        "pearl_discarded", "waste", "PEARL's drafted tokens per step that are not kept",
        "k - a R_P",
        (_IID,),
        "chain of PEARL (arXiv 2408.11850), derived",
        lambda i: float(pearl.discarded_per_step(i.alpha, i.k)),
    ),
    Formula(
        "expected_rounds", "E[R_n]", "rounds until a request's n tokens are out",
        "E[R_n] = 1 + sum_j p_j E[R_(n-j)]",
        ("independent rounds",),
        "theory note 4.1 (renewal recursion)",
        lambda i: finite.expected_rounds(i.n_tokens, i.tokens_pmf),
    ),
    Formula(
        "variance_rounds", "Var[R_n]", "variance of that number",
        "E[R_n^2] by the same recursion with input 2 E[R_n] - 1",
        ("independent rounds",),
        "theory note 4.1",
        lambda i: finite.variance_rounds(i.n_tokens, i.tokens_pmf),
    ),
    Formula(
        "batch_maximum_rounds", "E[max R_n]", "rounds until a static batch is done",
        "E[max] = sum_r 1 - P(R_n <= r)^m",
        ("independent rounds", "requests of one length, none admitted meanwhile"),
        "theory note 4.5",
        lambda i: expected_max_rounds(i.n_tokens, i.tokens_pmf, max(1, round(i.n_seqs))),
    ),
    Formula(
        "utilisation", "rho", "offered load / capacity of serial SD at full batches",
        "rho = lambda E[R_n] T_SD / m",
        ("open arrivals", "continuous batching with room for m", "prefill left out"),
        "Little's law; theory note 4.6",
        _load,
    ),
)  # fmt: skip
"""Every formula, section by section."""
