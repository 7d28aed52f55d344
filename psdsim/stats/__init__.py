"""Estimates with intervals, and quantiles as the serving benchmarks define them."""

from psdsim.stats.gaps import GapLog
from psdsim.stats.intervals import Estimate, batch_means_rate, t_interval
from psdsim.stats.quantiles import quantile, weighted_quantile

__all__ = [
    "Estimate",
    "GapLog",
    "batch_means_rate",
    "quantile",
    "t_interval",
    "weighted_quantile",
]
