"""PEARL with a draft length profiled for each batch size, as nano-PEARL sets it."""

from __future__ import annotations

from typing import ClassVar

from psdsim.commands import View
from psdsim.schedules.pearl import Pearl


class PearlAdaptive(Pearl):
    """PEARL whose k is the speed ratio, target pass / draft forward, at the size of the batch.

    Source: nano-PEARL, gamma = -1: round(target / draft) is profiled for a few batch sizes. Here
    it is read off the estimates of step times (`Look`) when the schedule starts and, like a
    captured CUDA graph, a batch uses the profile of the next size up, the largest beyond it.
    The k given is the most that is ever drafted.
    """

    name = "pearl-adaptive"
    summary = "pearl with k = target pass / draft forward, profiled for each batch size"
    source = "nano-PEARL (code), PEARL (arXiv 2408.11850)"
    looks = True

    sizes: ClassVar[tuple[int, ...]] = (1, 2, 4, 8, 16, 32)
    """Batch sizes that are profiled."""

    def __init__(self, k: int, capacity: int, *, chunked: bool = False) -> None:
        super().__init__(k, capacity, chunked=chunked)
        self._profile: dict[int, int] = {}

    def _length(self, n_seqs: int, view: View) -> int:
        if not self._profile:
            self._profile = {n: self._ratio(n, view) for n in self.sizes}
        size = next((n for n in self.sizes if n >= n_seqs), self.sizes[-1])
        return self._profile[size]

    def _ratio(self, n: int, view: View) -> int:
        draft_s = view.draft_s(n, 1)
        # A drafter that takes no time has no ratio: as much as is allowed.
        ratio = view.target_s(n, n) / draft_s if draft_s > 0.0 else float(self.k)
        return max(1, min(self.k, round(ratio)))
