"""Means over an acceptance probability that is Beta distributed over requests."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh_tridiagonal

from analysis._checks import FloatArray, one_count, positive


def beta_quadrature(a: float, b: float, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes in [0, 1] and weights of sum 1: E[f] under Beta(a, b) is weights @ f(nodes).

    Gauss-Jacobi quadrature from the eigenvalues of the three-term recurrence (Golub and Welsch
    1969); exact for polynomials of degree below 2 n_nodes. The normalising Beta function never
    appears, so narrow laws do not overflow.

    Parameters
    ----------
    a, b
        Shape parameters, > 0.
    n_nodes
        At least 2.

    Examples
    --------
    >>> alpha, weight = beta_quadrature(4.0, 1.0, 8)
    >>> round(float(weight @ alpha), 12), round(float(weight @ alpha**2), 12)   # 4/5, 4/6
    (0.8, 0.666666666667)
    """
    p, q = float(positive("a", a)), float(positive("b", b))
    n = np.arange(1.0, one_count("n_nodes", n_nodes, 2))
    total = p + q
    s = 2.0 * n + total - 2.0
    diagonal = np.append((p - q) / total, (p - q) * (total - 2.0) / (s * (s + 2.0)))
    # At n = 1 two factors cancel, which are both 0 where a + b = 1.
    first = 4.0 * p * q / (total**2 * (total + 1.0))
    m, t = n[1:], s[1:]
    others = 4.0 * m * (m + p - 1.0) * (m + q - 1.0) * (m + total - 2.0)
    squares = np.append(first, others / (t**2 * (t + 1.0) * (t - 1.0)))
    nodes, vectors = eigh_tridiagonal(diagonal, np.sqrt(squares))
    return np.clip(0.5 * (1.0 + nodes), 0.0, 1.0), np.asarray(vectors[0] ** 2)
