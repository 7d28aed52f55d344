"""Distilling the draft on the target's own outputs.

Source: DistillSpec (Zhou et al. 2023, arXiv 2310.08461): the data are texts that the target
generates, half of them greedily and half sampled, and the draft is trained towards the
target's distribution at every generated token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from realrun.models.cache import Rows
from realrun.models.decoder import Decoder
from realrun.models.make import make_forward
from realrun.train.corpus import Corpus, windows
from realrun.train.loop import Log, Loss, Recipe, logits_of, train


@torch.inference_mode()
def generate(
    decoder: Decoder,
    prompts: NDArray[np.int64],
    n_tokens: int,
    sampled: NDArray[np.bool_],
    seed: int,
) -> NDArray[np.int64]:
    """Continue prompts of one length.

    Parameters
    ----------
    decoder
        The model.
    prompts
        Shape (n, length).
    n_tokens
        Tokens to add.
    sampled
        Which rows sample at temperature 1; the others are greedy. Shape (n,).
    seed
        Of the samples.

    Returns
    -------
    numpy.ndarray
        Prompts and continuations, shape (n, length + n_tokens).
    """
    n, length = prompts.shape
    forward = make_forward(decoder, n, length + n_tokens)
    slots, mask = np.arange(n), torch.from_numpy(sampled)
    generator = torch.Generator().manual_seed(seed)
    rows = Rows(slots, np.zeros(n, np.int64), np.full(n, length))
    logits = forward(rows, prompts.reshape(-1), last_only=True)
    out = [torch.from_numpy(prompts)]
    for i in range(n_tokens):
        drawn = torch.multinomial(torch.softmax(logits, dim=-1), 1, generator=generator)[:, 0]
        tokens = torch.where(mask, drawn, logits.argmax(dim=-1))
        out.append(tokens[:, None])
        if i + 1 < n_tokens:
            rows = Rows(slots, np.full(n, length + i), np.ones(n, np.int64))
            logits = forward(rows, tokens)
    return torch.cat(out, dim=1).numpy()


def target_texts(
    target: Decoder,
    corpus: Corpus,
    n: int,
    length: int,
    n_prompt: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
    batch: int = 64,
) -> NDArray[np.int64]:
    """Return texts of the target behind prompts of the training text, shape (n, length).

    Parameters
    ----------
    target
        The model that writes.
    corpus
        Where prompts come from (the training part).
    n, length
        How many texts, tokens of each, prompt included.
    n_prompt
        Tokens of the prompt.
    seed
        Of prompts and samples.
    progress
        Told of the texts done.
    batch
        Texts written at a time.
    """
    rng = np.random.default_rng(seed)
    parts: list[NDArray[np.int64]] = []
    for first in range(0, n, batch):
        size = min(batch, n - first)
        prompts = windows(corpus.train, size, n_prompt, rng)
        sampled = np.arange(size) % 2 == 1
        parts.append(generate(target, prompts, length - n_prompt, sampled, seed + first))
        if progress is not None:
            progress(first + size)
    return np.concatenate(parts)


def distill(
    draft: Decoder,
    target: Decoder,
    texts: NDArray[np.int64],
    n_prompt: int,
    recipe: Recipe,
    log: Log | None = None,
) -> float:
    """Train the draft towards the target on the target's texts; return the last mean loss.

    Parameters
    ----------
    draft
        Trained in place.
    target
        Teacher.
    texts
        `target_texts`, shape (n, recipe.length + 1).
    n_prompt
        Tokens of each that the target did not write; they are not trained on.
    recipe
        How.
    log
        Told of the loss, KL(target || draft) in nats a token.
    """
    rng = np.random.default_rng(recipe.seed)

    def picked() -> Iterator[torch.Tensor]:
        while True:
            yield torch.from_numpy(texts[rng.integers(0, len(texts), recipe.batch)])

    return train(draft, picked(), recipe, _divergence(target, n_prompt), log)


def _divergence(target: Decoder, n_prompt: int) -> Loss:
    def loss(logits: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            law = functional.log_softmax(logits_of(target, given[:, :-1]).float(), dim=-1)
        own = functional.log_softmax(logits.float(), dim=-1)
        # Position i predicts token i + 1: the target wrote tokens n_prompt and later.
        each = functional.kl_div(own, law, reduction="none", log_target=True).sum(dim=-1)
        return each[:, n_prompt - 1 :].mean()

    return loss
