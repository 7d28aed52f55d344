"""PEARL's variants: a draft length from the speed ratio, and no GPU for the draft."""

from __future__ import annotations

from psdsim.errors import InputError
from psdsim.methods.base import Knob, Method, Parts
from psdsim.methods.parallel import refuse_rounds
from psdsim.scenario import Scenario
from psdsim.schedules.pearl import Pearl
from psdsim.schedules.pearl_adaptive import PearlAdaptive


class PearlAdaptiveMethod(Method):
    """PEARL with k = round(target pass / draft forward) for each batch size."""

    name = "pearl-adaptive"
    paper = "PEARL (arXiv 2408.11850), nano-PEARL"
    summary = PearlAdaptive.summary
    parts = Parts(
        schedule="pearl",
        length="round(target pass / draft forward) by batch size (1, 2, 4, 8, 16, 32), at most k",
    )
    unknown = "how a batch between two profiled sizes is served: the next size up is assumed"
    schedule = PearlAdaptive

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Leave the scenario as it is."""
        refuse_rounds(scenario, self.name)
        return scenario

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Return what was not published."""
        return ["ASSUMED pearl-adaptive: a batch takes the k of the next profiled size up"]


class PearlRcMethod(Method):
    """PEARL under resource competition: the draft runs on GPUs of a pipeline-parallel target.

    The first half of a block is drafted on the target's last GPU, the second on its first, each
    while the target works elsewhere, so that neither slows the other; the draft's KV cache
    moves between them in every step. PEARL's paper gives 1.3 to 1.6 ms for 128 to 1024 tokens,
    and 94 to 96 % of PEARL's speed. The move alone explains 1 to 2 % of a 110 ms step: what the
    rest is made of is not published and is not in here.
    """

    name = "pearl-rc"
    paper = "PEARL (arXiv 2408.11850), section 4.5 and appendix"
    summary = "pearl without a GPU for the draft, which runs where the target's pipeline is not"
    parts = Parts(schedule="pearl", drafter="draft model on the target's first and last GPU")
    unknown = (
        "the loss of 4 to 6 % beyond the cache's move, and what happens where a half block takes "
        "longer than the target is away: assumed to cost nothing"
    )
    knobs = (
        Knob(
            "move_s", 1.45e-3, 0.0, 1.0, "moving the draft's KV cache, s a step",
            "PEARL, appendix: 1.3 to 1.6 ms for 128 to 1024 tokens",
        ),
    )  # fmt: skip
    schedule = Pearl
    closed_form = "pearl"

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Put the draft on the target's GPUs, and the cache's move into every barrier.

        Raises
        ------
        psdsim.errors.InputError
            If the target is on one GPU.
        """
        draft = scenario.draft
        if draft is None:
            return scenario
        if scenario.target.n_gpus < 2:
            raise InputError(
                "pearl-rc drafts where the target's pipeline is not, and it has one GPU",
                expected="target.n_gpus of at least 2",
                where="target.n_gpus",
            )
        beside = {"config": draft.config, "gpu": scenario.target.gpu, "shared": True, "n_gpus": 1}
        return scenario.set(
            {"draft": beside, "step_time.sync_s": scenario.step_time.sync_s + self["move_s"]}
        )

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Return what was not stated."""
        out = [
            "ASSUMED pearl-rc: step_time.target is of a pipeline over the target's GPUs, and draft "
            "and target never meet on one of them"
        ]
        if "move_s" not in self.stated:
            out.append(
                f"ASSUMED pearl-rc: moving the draft's KV cache takes {self['move_s'] * 1e3:g} ms "
                "a step (PEARL: 1.3 to 1.6 ms)"
            )
        return out


FAMILY: tuple[type[Method], ...] = (PearlAdaptiveMethod, PearlRcMethod)
