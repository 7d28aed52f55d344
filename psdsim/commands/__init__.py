"""The words that a schedule says to its executor, and what the executor answers.

A schedule is a generator: it yields a command and is sent back the answer. Commands
carry request ids, shapes and handles; tokens, probabilities and KV stay with the
executor. The same commands are understood by the simulator (`psdsim.engine`) and by a
run on real models, which is why nothing here knows about time or randomness.

===============  ==========================================================================
command          answer
===============  ==========================================================================
``Admit``        `Admitted`: who is new; opens the next engine step
``Prefill``      `Verdict`: every request of it has emitted one token
``Draft``        `Handle`, finished
``Score``        `Handle`, finished
``Judge``        `Verdict` of a finished ``Score``
``Keep``         None; what is not kept counts as discarded
``Discard``      None
``Confidence``   `Chances` of a finished ``Draft``
``Look``         `View`
``Start``        `Handle`, running or queued
``WaitAll``      None, once all are finished
``WaitAny``      the finished handles, ordered by device and then by start
``Cancel``       True if the pass had not started (a running pass ends, its result is void)
``WaitArrival``  None, once a request has arrived
===============  ==========================================================================
"""

from psdsim.commands.flow import (
    Admit,
    Admitted,
    Cancel,
    Look,
    Start,
    WaitAll,
    WaitAny,
    WaitArrival,
)
from psdsim.commands.passes import (
    Chunks,
    Confidence,
    Discard,
    Draft,
    Judge,
    Keep,
    Prefill,
    Score,
    Verdict,
)
from psdsim.commands.tree import (
    Tree,
)
from psdsim.commands.words import (
    MAX_K,
    NO_IDS,
    Chances,
    Counts,
    Handle,
    Ids,
    Mask,
    StopRule,
    View,
)

Command = (
    Admit
    | Prefill
    | Draft
    | Confidence
    | Score
    | Judge
    | Keep
    | Discard
    | Look
    | Start
    | WaitAll
    | WaitAny
    | Cancel
    | WaitArrival
)

__all__ = [
    "MAX_K",
    "NO_IDS",
    "Admit",
    "Admitted",
    "Cancel",
    "Chances",
    "Chunks",
    "Command",
    "Confidence",
    "Counts",
    "Discard",
    "Draft",
    "Handle",
    "Ids",
    "Judge",
    "Keep",
    "Look",
    "Mask",
    "Prefill",
    "Score",
    "Start",
    "StopRule",
    "Tree",
    "Verdict",
    "View",
    "WaitAll",
    "WaitAny",
    "WaitArrival",
]
