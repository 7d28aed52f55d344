"""PEARL's ablations (Table 4): where i.i.d. acceptance fails, and what memory does to it."""

from __future__ import annotations

from functools import partial

from analysis import pearl as chain
from repro.claims import Claim, judged
from repro.pearl_inputs import (
    Pair,
    alpha_from_full,
    pairs,
    sd_mean_accepted,
    speedup,
    two_state,
    two_state_from_rows,
)
from repro.play import Interval, play, ratio

_claim = partial(judged, "pearl")
SPEED, LOSS, RATIO = 0.10, 0.20, 0.04
NO_PRE, NO_POST = "pearl-no-pre-verify", "pearl-no-post-verify"


def table4(size: tuple[int, int]) -> list[Claim]:
    """Return the claims of the ablation."""
    found = []
    for p in pairs():
        if p.data["table4"] is None:
            continue
        found += _with_own_mat(p, size) if p.alpha is not None else _from_its_rows(p, size)
    return found


def _speed(
    p: Pair, schedule: str, a: float, a0: float, size: tuple[int, int]
) -> tuple[float, Interval]:
    one = play(schedule, p.gamma, a, a0, p.draft_s, p.target_s, size)
    value, (low, high) = ratio(one.tokens, one.time_s)
    return value * p.target_s, (low * p.target_s, high * p.target_s)


def _loss(p: Pair, a: float, a0: float, size: tuple[int, int]) -> tuple[float, Interval]:
    """Return the share of speed lost without pre-verify; both schedules see the same text."""
    full, without = (
        play(name, p.gamma, a, a0, p.draft_s, p.target_s, size) for name in ("pearl", NO_PRE)
    )
    value, (low, high) = ratio(full.time_s, without.time_s)
    return 1.0 - value, (1.0 - high, 1.0 - low)


def _no_pre_loss(row: dict[str, float]) -> float:
    return 1.0 - row["no_pre"] / row["full"]


def _with_own_mat(p: Pair, size: tuple[int, int]) -> list[Claim]:
    row, where = p.data["table4"], p.data["table4_set"]
    alpha = p.alpha
    assert alpha is not None
    source = "Table 4 (alpha: Table 7, times: Table 10)"
    value, interval = _speed(p, NO_POST, alpha, alpha, size)
    full, full_interval = _speed(p, "pearl", alpha, alpha, size)
    loss, loss_interval = _loss(p, alpha, alpha, size)
    a1, a0 = two_state(p)
    memory = f"two-state: accepts {a0:.2f} after a rejection, {a1:.4f} else"
    two_loss, two_interval = _loss(p, a1, a0, size)
    two_post, two_post_interval = _speed(p, NO_POST, a1, a0, size)
    found = [
        _claim(
            f"table4-full-{p.key}", f"PEARL in the ablation, {p.name}, {where}", source=source,
            evidence="P", theirs=row["full"], ours=full, interval=full_interval,
            tolerance=SPEED, unit="x",
            reason=f"the same pair and set has {p.data['table1']['pearl']} in Table 1",
        ),
        _claim(
            f"table4-no-post-{p.key}", f"PEARL without post-verify, {p.name}, {where}",
            source=source, evidence="P", theirs=row["no_post"], ours=value, interval=interval,
            tolerance=SPEED, unit="x", asked=True,
        ),
        _claim(
            f"table4-no-pre-{p.key}", f"speed lost without pre-verify, i.i.d., {p.name}, {where}",
            source=source, evidence="P", theirs=_no_pre_loss(row), ours=loss,
            interval=loss_interval, tolerance=LOSS, unit="%",
            reason="i.i.d. acceptance understates it: after a rejection the next draft would have "
            "to fail more often than the average one",
        ),
        _claim(
            f"table4-no-pre-two-state-{p.key}",
            f"speed lost without pre-verify, two-state, {p.name}, {where}", source=source,
            evidence="P", theirs=_no_pre_loss(row), ours=two_loss, interval=two_interval,
            tolerance=LOSS, unit="%", solved="this row", reason=memory,
        ),
        _claim(
            f"table4-no-post-two-state-{p.key}",
            f"PEARL without post-verify, two-state, {p.name}, {where}",
            source=source, evidence="P", theirs=row["no_post"], ours=two_post,
            interval=two_post_interval, tolerance=SPEED, unit="x",
            reason=f"{memory}, from the no-pre-verify row",
        ),
    ]  # fmt: skip
    return found + _memory_elsewhere(p, a1, a0, memory)


def _memory_elsewhere(p: Pair, a1: float, a0: float, memory: str) -> list[Claim]:
    """Hold the same two states against other tables; closed forms."""
    runs, k = p.data["table11"], p.gamma
    ratio_ = (1.0 + sd_mean_accepted(k, a1, a0)) / float(chain.tokens_per_step(a1, k, a0))
    why = f"{memory}, from Table 4: memory of that size is more than this table shows"
    return [
        _claim(
            f"table11-two-state-{p.key}",
            f"target runs of PEARL / of SD, two-state, {p.name}, k={k}",
            source="Table 11 (acceptance: Tables 7 and 4)", evidence="P",
            theirs=runs["pearl"][1] / runs["sd"][1], ours=ratio_, tolerance=RATIO, reason=why,
        ),
        _claim(
            f"table7-two-state-{p.key}",
            f"accepted drafts a round of SD, two-state, {p.name}, k={p.data['sd_gamma']}",
            source="Table 7 (acceptance: PEARL's row and Table 4)", evidence="P",
            theirs=p.data["sd_mat"], ours=sd_mean_accepted(p.data["sd_gamma"], a1, a0),
            tolerance=0.05, unit="tokens", reason=why,
        ),
        _claim(
            f"table1-two-state-{p.key}", f"PEARL on HumanEval, two-state, {p.name}, k={k}",
            source="Table 1 (acceptance: Tables 7 and 4)", evidence="P",
            theirs=p.data["table1"]["pearl"], ours=speedup(p, "pearl", k, a1, a0),
            tolerance=SPEED, unit="x", reason=f"{memory}, from Table 4",
        ),
    ]  # fmt: skip


def _from_its_rows(p: Pair, size: tuple[int, int]) -> list[Claim]:
    """A pair without a published acceptance: solved from rows of this table."""
    row, where = p.data["table4"], p.data["table4_set"]
    alpha = alpha_from_full(p)
    why = f"no acceptance was found for {where}: alpha={alpha:.3f} solved from the full row"
    value, interval = _speed(p, NO_POST, alpha, alpha, size)
    loss, loss_interval = _loss(p, alpha, alpha, size)
    a1, a0 = two_state_from_rows(p)
    memory = f"accepts {a0:.2f} after a rejection, {a1:.4f} else"
    two_post, two_interval = _speed(p, NO_POST, a1, a0, size)
    return [
        _claim(
            f"table4-no-post-{p.key}", f"PEARL without post-verify, {p.name}, {where}",
            source="Table 4", evidence="P", theirs=row["no_post"], ours=value,
            interval=interval, tolerance=SPEED, unit="x", solved="the full row", reason=why,
        ),
        _claim(
            f"table4-no-pre-{p.key}", f"speed lost without pre-verify, i.i.d., {p.name}, {where}",
            source="Table 4", evidence="P", theirs=_no_pre_loss(row), ours=loss,
            interval=loss_interval, tolerance=LOSS, unit="%", solved="the full row",
            reason=f"{why}; i.i.d. acceptance understates it",
        ),
        _claim(
            f"table4-no-post-two-state-{p.key}",
            f"PEARL without post-verify, two-state, {p.name}, {where}", source="Table 4",
            evidence="P", theirs=row["no_post"], ours=two_post, interval=two_interval,
            tolerance=SPEED, unit="x", solved="the full and no-pre-verify rows",
            reason=f"{memory}: both solved from the other two rows",
        ),
    ]  # fmt: skip
