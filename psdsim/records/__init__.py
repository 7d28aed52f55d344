"""What a run leaves behind, in the same form whether simulated or measured."""

from psdsim.records.columns import REQUEST_COLUMNS, STEP_COLUMNS, StepKind
from psdsim.records.recording import Recording, read_recording
from psdsim.records.rounds import RoundLog, Rounds
from psdsim.records.spans import Span, SpanKind
from psdsim.records.steps import StepLog, StepRow

__all__ = [
    "REQUEST_COLUMNS",
    "STEP_COLUMNS",
    "Recording",
    "RoundLog",
    "Rounds",
    "Span",
    "SpanKind",
    "StepKind",
    "StepLog",
    "StepRow",
    "read_recording",
]
