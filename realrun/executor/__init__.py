"""The executor: interprets schedules on two workers and keeps records."""

from realrun.executor.core import Executor
from realrun.executor.rules import ForcedRule, GreedyRule, Rule, SamplingRule
from realrun.executor.setup import Job, RunResult

__all__ = ["Executor", "ForcedRule", "GreedyRule", "Job", "Rule", "RunResult", "SamplingRule"]
