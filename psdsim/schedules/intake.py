"""How requests come in where prompts are computed in steps of their own."""

from __future__ import annotations

import numpy as np

from psdsim.commands import NO_IDS, Admit, Admitted, Prefill, Verdict, WaitArrival
from psdsim.schedules.base import Answered


def take_in(capacity: int, n_here: int) -> Answered:
    """Admit and prefill as long as someone comes in; wait if nobody is here.

    Parameters
    ----------
    capacity
        Most requests in flight.
    n_here
        Requests that decode already.

    Returns
    -------
    Ids or None
        Who came in and decodes on, maybe nobody; None: the work is done.
    """
    new = NO_IDS
    while True:
        admitted: Admitted = yield Admit(capacity)
        if admitted.new.size:
            first: Verdict = yield Prefill(admitted.new)
            left = admitted.new if first.stopped is None else admitted.new[~first.stopped]
            new = np.concatenate((new, left))
        elif n_here + new.size:
            return new
        elif admitted.exhausted:
            return None
        else:
            yield WaitArrival()
