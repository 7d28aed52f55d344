"""Prompts: from a file, or held-out pieces of the standard library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from psdsim.errors import InputError
from psdsim.seeds import Stream, generator
from realrun.executor.setup import Tokens
from realrun.models.tokenizer import Tokenizer
from realrun.train.corpus import held_out_text

Encode = Callable[[str], list[int]]


def read_prompts(path: Path) -> list[str]:
    r"""Return the prompts of a file: one a line; ``.jsonl`` lines are objects with ``prompt``.

    In a text file the two characters ``\n`` stand for a line break.

    Raises
    ------
    psdsim.errors.InputError
        If the file can't be read or holds no prompt; the line is named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"can't be read: {reason}", where=str(path)) from None
    lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    if path.suffix.lower() == ".jsonl":
        prompts = [_json_prompt(line, f"{path}: line {i}") for i, line in lines]
    else:
        prompts = [line.rstrip("\r").replace("\\n", "\n") for _, line in lines]
    if not prompts:
        raise InputError("holds no prompt", expected="one a line", where=str(path))
    return prompts


def _json_prompt(line: str, where: str) -> str:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("is not JSON", where=where) from None
    prompt = value.get("prompt") if isinstance(value, dict) else None
    if not isinstance(prompt, str) or not prompt:
        raise InputError("has no text under 'prompt'", where=where)
    return prompt


def encode_prompts(
    prompts: list[str], n: int, tokenizer: Tokenizer, max_tokens: int | None
) -> tuple[Tokens, ...]:
    """Return the tokens of `n` prompts, from the first again where there are fewer.

    Parameters
    ----------
    prompts
        Texts.
    n
        How many are wanted.
    tokenizer
        The target's.
    max_tokens
        Longer prompts lose their beginning; None keeps them whole.
    """
    encoded = [np.array(tokenizer.encode(text), dtype=np.int64) for text in prompts[:n]]
    if max_tokens is not None:
        encoded = [tokens[-max_tokens:] for tokens in encoded]
    return tuple(encoded[i % len(encoded)] for i in range(n))


def held_out_prompts(n: int, length: int, seed: int) -> tuple[Tokens, ...]:
    """Return `n` pieces of `length` bytes of files that the built-in pair never learned from.

    Raises
    ------
    psdsim.errors.InputError
        If the standard library's source is not installed or too short.
    """
    text = held_out_text()
    if text.size <= length:
        raise InputError(
            f"the held-out source has {text.size} bytes",
            expected=f"more than the {length} of a prompt",
            where="--prompt-tokens",
        )
    rng = generator(seed, 0, Stream.LENGTHS)
    starts = rng.integers(0, text.size - length, n)
    return tuple(text[start : start + length].astype(np.int64) for start in starts)


def random_prompts(n: int, length: int, vocab_size: int, seed: int) -> tuple[Tokens, ...]:
    """Return `n` prompts of random tokens: for models whose text means nothing."""
    rng = generator(seed, 0, Stream.LENGTHS)
    return tuple(rng.integers(0, vocab_size, length) for _ in range(n))
