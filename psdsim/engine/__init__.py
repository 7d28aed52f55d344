"""The simpy executor of schedules: clock, devices, queues, KV memory, records."""

from psdsim.engine.core import simulate_run
from psdsim.engine.setup import Costs, EngineSetup, RawRun

__all__ = ["Costs", "EngineSetup", "RawRun", "simulate_run"]
