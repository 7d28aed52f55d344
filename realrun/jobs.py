"""From options to a job: prompts in the target's tokens, and a warm-up of the same shape."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from psdsim.errors import InputError
from realrun.executor.setup import Job, Tokens
from realrun.models.load import config_of, tokenizer_of
from realrun.prompts import encode_prompts, held_out_prompts, random_prompts, read_prompts

_WARM_UP_TOKENS = 16


def make_prompts(
    target: str,
    path: Path | None,
    n: int | None,
    default_n: int,
    n_tokens: int,
    seed: int,
) -> tuple[Tokens, ...]:
    """Return prompts in the target's tokens.

    Parameters
    ----------
    target
        The target's spec.
    path
        Prompt file; None: held-out source code, or random tokens for random weights.
    n
        How many; None: all of the file, else `default_n`.
    default_n
        How many without a file.
    n_tokens
        Tokens of each; of a file's prompts the last `n_tokens` at most.
    seed
        Of the choice.
    """
    if n is not None and n < 1:
        raise InputError(f"found {n}", expected="at least 1", where="--requests")
    if path is not None:
        texts = read_prompts(path)
        return encode_prompts(texts, n or len(texts), tokenizer_of(target), n_tokens)
    n = n or default_n
    if target.startswith("random:"):
        # A draft model's vocabulary may be padded to fewer tokens (`check_vocabularies`: 1 %).
        known = int(0.99 * config_of(target).vocab_size)
        return random_prompts(n, n_tokens, known, seed)
    if target.startswith("builtin:"):
        return held_out_prompts(n, n_tokens, seed)
    # Source code again, but in the tokens of the model: about 3 bytes each.
    pieces = held_out_prompts(n, 6 * n_tokens, seed)
    texts = [bytes(piece.astype(np.uint8)).decode("utf-8", "replace") for piece in pieces]
    return encode_prompts(texts, n, tokenizer_of(target), n_tokens)


def warm_up(job: Job, capacity: int) -> Job:
    """Return a short job that runs every pass of a job's shape once, to be thrown away."""
    n = min(capacity, len(job.prompts))
    wanted = np.minimum(job.output_tokens[:n], _WARM_UP_TOKENS)
    return Job(job.prompts[:n], wanted, np.zeros(n))
