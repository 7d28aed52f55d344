"""Training the built-in pair on the standard library, and what is written down about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from realrun.models.config import ModelConfig
from realrun.models.decoder import Decoder
from realrun.stamp import hardware, versions
from realrun.train.corpus import Bytes, Corpus, windows
from realrun.train.init import initialise
from realrun.train.loop import Log, Recipe, evaluate, train

_EVALUATED = 128  # windows of the held-out text


def train_on_corpus(
    config: ModelConfig, corpus: Corpus, recipe: Recipe, log: Log | None = None
) -> tuple[Decoder, dict[str, Any]]:
    """Train a byte-level model from random weights.

    Parameters
    ----------
    config
        Its shape.
    corpus
        Text, split.
    recipe
        Steps, learning rate, seed.
    log
        Told of the loss now and then.

    Returns
    -------
    tuple
        The model, and its card: recipe, losses in nats a byte, corpus, hardware, versions.
    """
    decoder = Decoder(config)
    initialise(decoder, recipe.seed)
    decoder.set_positions(recipe.length)
    rng = np.random.default_rng(recipe.seed)
    loss = train(decoder, batches(corpus.train, recipe, rng), recipe, log=log)
    return decoder, card(decoder, corpus, recipe, loss)


def batches(text: Bytes, recipe: Recipe, rng: np.random.Generator) -> Iterator[torch.Tensor]:
    """Yield random windows of a text, shape (batch, length + 1), without end."""
    while True:
        yield torch.from_numpy(windows(text, recipe.batch, recipe.length + 1, rng))


def card(decoder: Decoder, corpus: Corpus, recipe: Recipe, train_loss: float) -> dict[str, Any]:
    """Return what is written down about a trained model."""
    return {
        "n_parameters": decoder.config.n_parameters,
        "train_loss_nats_per_byte": round(train_loss, 4),
        "held_out_loss_nats_per_byte": round(held_out_loss(decoder, corpus, recipe.length), 4),
        "corpus": corpus.source,
        "n_held_out_files": len(corpus.held_out_files),
        "recipe": {
            "optimiser": "Muon on matrices of the layers, AdamW on the rest",
            "steps": recipe.steps,
            "batch": recipe.batch,
            "length": recipe.length,
            "bytes_seen": recipe.steps * recipe.batch * recipe.length,
            "lr": recipe.lr,
            "weight_decay": recipe.weight_decay,
            "seed": recipe.seed,
        },
        "hardware": hardware(),
        "versions": versions(),
    }


def held_out_loss(decoder: Decoder, corpus: Corpus, length: int) -> float:
    """Return the loss on fixed windows of the held-out text, nats a byte."""
    rng = np.random.default_rng(1)
    fixed = torch.from_numpy(windows(corpus.held_out, _EVALUATED, length + 1, rng))
    return evaluate(decoder, fixed)
