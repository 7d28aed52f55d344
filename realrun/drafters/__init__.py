"""Drafters: a draft model, the target's first layers, or a look-up in the text itself."""

from realrun.drafters.base import Drafted, Drafter
from realrun.drafters.model import ModelDrafter
from realrun.drafters.ngram import NgramDrafter

__all__ = ["Drafted", "Drafter", "ModelDrafter", "NgramDrafter"]
