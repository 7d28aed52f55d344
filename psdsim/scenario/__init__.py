"""Scenario files: a deployment and its traffic, read, checked and changed."""

from psdsim.scenario.files import builtin_text
from psdsim.scenario.model import Scenario
from psdsim.scenario.overrides import parse_assignment, parse_assignments
from psdsim.scenario.parts import DraftOnGpus, Engine, ModelOnGpus, SlowDown, StepTimes

__all__ = [
    "DraftOnGpus",
    "Engine",
    "ModelOnGpus",
    "Scenario",
    "SlowDown",
    "StepTimes",
    "builtin_text",
    "parse_assignment",
    "parse_assignments",
]
