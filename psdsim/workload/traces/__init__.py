"""Trace files: read by column name, whatever tool wrote them."""

from psdsim.workload.traces.read import read_trace
from psdsim.workload.traces.write import write_trace

__all__ = ["read_trace", "write_trace"]
