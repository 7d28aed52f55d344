"""Who is accepted: the tape of verdicts drawn before a run, and the rules that read it.

Nothing here knows a clock, a device or an engine: the simulator and a run on real models with
forced acceptance read the very same tape, so that they take the same steps.
"""

from psdsim.verdict.judge import Judge, Judged, block_length, make_judge, n_tested
from psdsim.verdict.proposals import PLAIN, Classifier, Proposals
from psdsim.verdict.signals import Signals
from psdsim.verdict.tape import Tape

__all__ = [
    "PLAIN",
    "Classifier",
    "Judge",
    "Judged",
    "Proposals",
    "Signals",
    "Tape",
    "block_length",
    "make_judge",
    "n_tested",
]
