"""Relaxed verification: a verifier that leans towards the drafter accepts more (DIVERSED).

With weight w on the target the verifier follows v = w p + (1 - w) q, and a draft that would be
accepted with probability a is accepted with 1 - w (1 - a). The uniform behind a verdict stays:
what the lossless verifier accepts, the relaxed one accepts.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.special import betaincinv

from psdsim.acceptance.base import AcceptanceModel, TapeModel, checked_size
from psdsim.acceptance.beta import BetaAcceptance, _beta_quadrature
from psdsim.acceptance.ensemble import EnsembleAcceptance
from psdsim.acceptance.fields import Positive, Probability, check_draft_length
from psdsim.acceptance.iid import IidAcceptance, MeanLengthAcceptance
from psdsim.acceptance.law import BoolArray, FloatArray, IntArray
from psdsim.acceptance.markov import MarkovAcceptance, MarkovRoundsAcceptance
from psdsim.acceptance.position import HistogramAcceptance, PositionAcceptance
from psdsim.errors import InputError

DrawnPer = Literal["request", "position"]
_HIGH_BITS = 2.0**26


class RelaxedAcceptance(TapeModel):
    """1 - w (1 - a) of a base model whose requests differ, or with a weight that is drawn.

    `relax` makes it where no other kind says the same. The weight of a request or of a position
    is independent of the base's rate: how the two hang together is not known.

    Examples
    --------
    >>> model = RelaxedAcceptance(base=BetaAcceptance(a=4.0, b=1.0), target_weight=0.5)
    >>> round(float(model.conditional_rates(1)[0]), 12)     # 1 - 0.5 (1 - 0.8)
    0.9
    """

    kind: Literal["relaxed"] = Field("relaxed", description="A base model, verified relaxedly.")
    base: Annotated[
        IidAcceptance | MeanLengthAcceptance | BetaAcceptance, Field(discriminator="kind")
    ] = Field(description="How drafts fare with a lossless verifier.")
    target_weight: Probability = Field(description="w, mean weight of the target; 1: lossless.")
    concentration: Positive | None = Field(
        None, description="Weights ~ Beta of this a + b around target_weight; null: all the same."
    )
    drawn_per: DrawnPer = Field("request", description="Who has a weight of its own, if drawn.")

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        if self.concentration is None:
            if "drawn_per" in self.model_fields_set and self.drawn_per == "position":
                raise ValueError("drawn_per has no effect without a concentration")
        elif not 0.0 < self.target_weight < 1.0:
            raise ValueError(
                f"target_weight is {self.target_weight:g} and weights are drawn around it; "
                "expected a number strictly between 0 and 1, or no concentration"
            )
        return self

    def request_rates(self) -> tuple[FloatArray, FloatArray]:
        """Return acceptance rates of requests and their probabilities, shape (n,) each.

        Exact for means of polynomials of the rate (Gauss-Jacobi); one rate where requests are
        alike. A weight per position has the law of its mean: it is independent of the rest.
        """
        base, alpha_weights = np.ones(1), np.ones(1)
        if isinstance(self.base, BetaAcceptance):
            base, alpha_weights = _beta_quadrature(*self.base.shape)
        else:
            base = base * self.base.alpha
        w, w_weights = np.array([self.target_weight]), np.ones(1)
        if self.concentration is not None and self.drawn_per == "request":
            w, w_weights = _beta_quadrature(*self._weight_shape(self.concentration))
        rates = 1.0 - np.outer(w, 1.0 - base)
        return rates.ravel(), np.outer(w_weights, alpha_weights).ravel()

    def _weight_shape(self, concentration: float) -> tuple[float, float]:
        return self.target_weight * concentration, (1.0 - self.target_weight) * concentration

    def conditional_rates(self, k: int) -> FloatArray:
        """Return E[rate^i] / E[rate^(i-1)] over requests, shape (k,)."""
        check_draft_length(k)
        rates, weights = self.request_rates()
        moments = np.array([weights @ rates**i for i in range(k + 1)])
        out: FloatArray = np.zeros(k)
        np.divide(moments[1:], moments[:-1], out=out, where=moments[:-1] > 0.0)
        return out

    def pooled_acceptance_length(self, k: int) -> float:
        """Return 1 / E[1 / E[N | rate]]: tokens over rounds of equally long requests."""
        check_draft_length(k)
        rates, weights = self.request_rates()
        length = sum(rates**i for i in range(k + 1))
        return float(1.0 / (weights @ (1.0 / length)))

    def sample_requests(
        self, k: int, n_requests: int, n_rounds: int, rng: np.random.Generator
    ) -> IntArray:
        """Draw a rate for each request and rounds at it, shape (n_requests, n_rounds)."""
        check_draft_length(k)
        shape = (checked_size(n_requests), checked_size(n_rounds))
        row_start = np.arange(shape[0], dtype=np.int64) * shape[1] * k
        u = rng.random(shape[0] * shape[1] * k)
        if not u.size:
            return np.zeros(shape, dtype=np.int64)
        bits = self.accept_bits(u, row_start, rng.random(shape[0])).reshape(*shape, k)
        return np.asarray(np.cumprod(bits, axis=-1, dtype=np.int64).sum(axis=-1))

    def accept_bits(self, u: FloatArray, row_start: IntArray, request_u: FloatArray) -> BoolArray:
        """Ask the base model, with uniforms moved as the weight says.

        u < 1 - w (1 - a) exactly if 1 - (1 - u) / w < a. The moved uniform is never above u,
        which is why nothing is lost that the base accepts.
        """
        w: FloatArray | float = self.target_weight
        if self.concentration is not None:
            # The low bits of a uniform are as good as independent of it.
            own = request_u if self.drawn_per == "request" else u
            low = own * _HIGH_BITS % 1.0
            w = np.maximum(betaincinv(*self._weight_shape(self.concentration), low), 1e-300)
            if self.drawn_per == "request":
                w = np.repeat(w, np.diff(np.append(row_start, u.size)))
        elif w == 0.0:
            return np.ones(u.size, dtype=np.bool_)
        # At w = 1 nothing may move, not even by rounding.
        moved = np.minimum(1.0 - (1.0 - u) / w, u) if self.target_weight < 1.0 else u
        return self.base.accept_bits(moved, row_start, request_u)

    def notes(self, k: int) -> list[str]:
        """Say which mean acceptance length is meant where requests differ."""
        self.check_k(k)
        if self.request_rates()[0].size == 1:
            return []
        return [
            "acceptance differs between requests: the pooled acceptance length "
            f"({self.pooled_acceptance_length(k):.4g} at k={k}) is below the mean of the "
            f"requests' own ({self.acceptance_length(k):.4g})"
        ]


def relax(
    model: AcceptanceModel,
    target_weight: float,
    *,
    concentration: float | None = None,
    drawn_per: DrawnPer = "request",
) -> AcceptanceModel:
    """Return the model with every rate a turned into 1 - w (1 - a).

    Exact for every kind; a chain's two rates are both turned (for markov the state is then the
    relaxed verdict, and what the base accepts is still accepted if after_accept >= after_reject).

    Parameters
    ----------
    model
        How drafts fare with a lossless verifier.
    target_weight
        w, in [0, 1].
    concentration, drawn_per
        See `RelaxedAcceptance`; only over a base of kind iid, mean_length or beta.

    Raises
    ------
    psdsim.errors.InputError
        For a replay, whose rates nobody knows, and for drawn weights over other kinds.

    Examples
    --------
    >>> relax(IidAcceptance(alpha=0.5), 0.5).alpha
    0.75
    """
    if not 0.0 <= target_weight <= 1.0:
        raise InputError(f"the target weight is {target_weight}", expected="0 to 1")

    def lift(rate: float) -> float:
        return 1.0 - target_weight * (1.0 - rate)

    kind = getattr(model, "kind", type(model).__name__)
    if concentration is not None or isinstance(model, BetaAcceptance):
        if not isinstance(model, IidAcceptance | MeanLengthAcceptance | BetaAcceptance):
            raise InputError(
                f"weights that are drawn can't be put on acceptance of kind {kind}",
                expected="iid, mean_length or beta, or one weight for all",
                where="acceptance.kind",
            )
        drawn = {} if concentration is None else {"drawn_per": drawn_per}
        return RelaxedAcceptance(
            base=model, target_weight=target_weight, concentration=concentration, **drawn
        )
    if isinstance(model, IidAcceptance | MeanLengthAcceptance):
        return IidAcceptance(alpha=lift(model.alpha))
    if isinstance(model, PositionAcceptance | HistogramAcceptance):
        rates = tuple(lift(rate) for rate in model._measured().tolist())
        return PositionAcceptance(rates=rates, convention="conditional", extend=model.extend)
    if isinstance(model, MarkovAcceptance):
        return MarkovAcceptance(
            after_accept=lift(model.after_accept), after_reject=lift(model.after_reject)
        )
    if isinstance(model, MarkovRoundsAcceptance):
        return MarkovRoundsAcceptance(
            after_full=tuple(map(lift, model.after_full)),
            otherwise=tuple(map(lift, model.otherwise)),
            extend=model.extend,
        )
    if isinstance(model, EnsembleAcceptance):
        lifted = tuple(tuple(map(lift, row)) for row in model.rates)
        return model.model_copy(update={"rates": lifted})
    if isinstance(model, RelaxedAcceptance) and model.concentration is None:
        return model.model_copy(update={"target_weight": target_weight * model.target_weight})
    raise InputError(
        f"acceptance of kind {kind} can't be relaxed",
        expected="a model whose rates are stated",
        where="acceptance.kind",
    )
