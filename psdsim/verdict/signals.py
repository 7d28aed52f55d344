"""What else a run reads off the tape: ranks, confidences, answers of a classifier, candidates.

Each has uniforms of its own beside those that decide acceptance, so that a method that looks at
them sees the same text as one that doesn't. The law is the one of the description in
`Proposals`; only the order of drawing differs, for the tape of verdicts comes first: an
acceptance probability is drawn given the verdict (Bayes' rule for a Beta law and one trial), a
rank given that the first choice was wrong.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from psdsim.commands import Counts
from psdsim.seeds import Stream
from psdsim.verdict.proposals import Proposals
from psdsim.verdict.tape import Tape

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]
Places = NDArray[np.int64]


class Signals:
    """Reads signals at places of a tape.

    Parameters
    ----------
    proposals
        What they say.
    tape
        Where the uniforms are; a channel is only drawn once something reads it.
    """

    def __init__(self, proposals: Proposals, tape: Tape) -> None:
        self.proposals = proposals
        self._tape = tape
        self._edges = np.cumsum(np.array(proposals.sibling_shares, dtype=np.float64))

    def ranks(self, places: Places, bits: Bits) -> Counts:
        """Return the rank of the target's token among the drafter's candidates; 0: not among them.

        Parameters
        ----------
        places
            Flat tape indices, any shape.
        bits
            Whether the first choice is accepted there.
        """
        u = self._tape.channel(Stream.RANK)[places]
        later = np.searchsorted(self._edges, u, side="right")
        later = np.where(later < self._edges.size, later + 2, 0)
        return np.where(bits, 1, later)

    def chances(self, places: Places, bits: Bits, rates: Floats) -> Floats:
        """Return confidences of drafts, or a classifier's answers in their place.

        Parameters
        ----------
        places
            Flat tape indices, shape (n, k).
        bits
            Whether each draft is accepted if all before it are, shape (n, k).
        rates
            P(that), by place in the block, broadcastable to (n, k).
        """
        if self.proposals.classifier is not None:
            return self._answers(places, bits)
        kappa, rates = self.proposals.concentration, np.broadcast_to(rates, bits.shape)
        if not math.isfinite(kappa):
            chance = np.array(rates)
        else:
            z = self._tape.channel(Stream.CONFIDENCE)[places]
            # Where the rate is 0 or 1 there is nothing to know.
            sure = (rates <= 0.0) | (rates >= 1.0)
            inner = np.where(sure, 0.5, rates)
            a, b = inner * kappa + bits, (1.0 - inner) * kappa + ~bits
            chance = np.where(sure, rates, special.betaincinv(a, b, z))
        if self.proposals.temperature != 1.0:
            inner = np.clip(chance, 1e-12, 1.0 - 1e-12)
            heated = special.expit(special.logit(inner) / self.proposals.temperature)
            chance = np.where((chance > 0.0) & (chance < 1.0), heated, chance)
        return np.asarray(chance, dtype=np.float64)

    def _answers(self, places: Places, bits: Bits) -> Floats:
        """Ask the classifier of each block, once, with the noise of the block's last token."""
        classifier = self.proposals.classifier
        assert classifier is not None
        out = np.zeros(bits.shape)
        for start in range(0, bits.shape[1], classifier.block):
            end = min(start + classifier.block, bits.shape[1])
            whole = bits[:, :end].all(axis=1)
            z = self._tape.channel(Stream.CONFIDENCE)[places[:, end - 1]]
            yes = z < np.where(whole, classifier.true_positive, classifier.false_positive)
            out[:, start:end] = yes[:, None]
        return out

    def best(self, places: Places, bits: Bits, rates: Floats, n: int) -> tuple[Counts, Counts]:
        """Return the accepted drafts of the candidate that is taken, and which it is.

        Candidate 0 is the one on the tape; another fares at each position as that one does with
        probability `correlation`, else independently at the same rate.

        Parameters
        ----------
        places, bits, rates
            As for `chances`.
        n
            Candidates.
        """
        lengths = [run_lengths(bits)]
        rho = self.proposals.correlation
        for candidate in range(1, n):
            v = self._tape.channel(Stream.CANDIDATE, candidate - 1)[places]
            with np.errstate(invalid="ignore", divide="ignore"):
                fresh = (v - rho) / (1.0 - rho) < rates
            lengths.append(run_lengths(np.where(v < rho, bits, fresh)))
        table = np.stack(lengths)
        if self.proposals.select == "first":
            return lengths[0], np.zeros_like(lengths[0])
        return table.max(axis=0), np.asarray(table.argmax(axis=0), dtype=np.int64)


def run_lengths(bits: Bits) -> Counts:
    """Return how many leading positions of each row are accepted, shape (n,).

    Examples
    --------
    >>> run_lengths(np.array([[True, False, True], [True, True, True]])).tolist()
    [1, 3]
    """
    lengths: Counts = np.cumprod(bits, axis=1, dtype=np.int64).sum(axis=1)
    return lengths
