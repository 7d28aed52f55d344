"""`realrun train` and `realrun distill`: the built-in pair, made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import torch
import typer

from psdsim.errors import InputError
from realrun.cli.options import Seed, at_least, whole
from realrun.models.folder import save_model
from realrun.models.load import load_model
from realrun.train.corpus import load_corpus
from realrun.train.loop import Recipe
from realrun.train.pair import card, train_on_corpus
from realrun.train.shapes import DRAFT, TARGET

_N_PROMPT = 64

Steps = Annotated[
    int | None,
    typer.Option(help="Updates; none: the recipe's.", parser=whole, metavar="INTEGER"),
]
Rate = Annotated[float, typer.Option(help="Peak learning rate.")]
CorpusFolder = Annotated[
    Path | None,
    typer.Option(help="Folder of Python files; none: the standard library.", show_default=False),
]


def train_command(
    model: Annotated[str, typer.Argument(help="target or draft.")],
    output: Annotated[Path, typer.Option(help="Folder for config.json, weights and card.")],
    steps: Steps = None,
    lr: Annotated[
        float | None,
        typer.Option(help="Peak learning rate; none: the recipe's.", show_default=False),
    ] = None,
    corpus: CorpusFolder = None,
    seed: Seed = 0,
) -> None:
    """Train a byte-level model of the built-in shapes on source code."""
    shapes = {"target": (TARGET, 1800, 3e-3), "draft": (DRAFT, 2500, 5e-3)}
    if model not in shapes:
        raise InputError(f"'{model}' is no model of the pair", expected="target or draft")
    config, default_steps, default_lr = shapes[model]
    updates = default_steps if steps is None else at_least(steps, 1, "--steps")
    peak = default_lr if lr is None else _rate(lr)
    recipe = Recipe(steps=updates, lr=peak, seed=seed)
    decoder, about = train_on_corpus(config, load_corpus(corpus), recipe, _log)
    save_model(decoder, output, torch.float16, about)
    typer.echo(f"held-out loss {about['held_out_loss_nats_per_byte']} nats a byte; in {output}")


def distill_command(
    output: Annotated[Path, typer.Option(help="Folder for config.json, weights and card.")],
    target: Annotated[str, typer.Option(help="Teacher, a byte-level model.")] = "builtin:target",
    draft: Annotated[str, typer.Option(help="Where the draft starts.")] = "builtin:draft",
    texts: Annotated[
        int, typer.Option(help="Texts that the target writes.", parser=whole, metavar="INTEGER")
    ] = 2048,
    steps: Annotated[int, typer.Option(help="Updates.", parser=whole, metavar="INTEGER")] = 900,
    lr: Rate = 2e-3,
    corpus: CorpusFolder = None,
    seed: Seed = 0,
) -> None:
    """Train a draft towards the target's distributions on the target's own texts (DistillSpec)."""
    from realrun.train.distill import distill, target_texts

    recipe = Recipe(steps=at_least(steps, 1, "--steps"), lr=_rate(lr), seed=seed)
    teacher, student = (load_model(name).decoder for name in (target, draft))
    if teacher.config.vocab_size != 256 or student.config.vocab_size != 256:
        raise InputError("the corpus is bytes", expected="models with 256 tokens")
    text = load_corpus(corpus)
    at_least(texts, recipe.batch, "--texts")
    written = target_texts(
        teacher, text, texts, recipe.length + 1, _N_PROMPT, seed,
        lambda done: typer.echo(f"{done} texts written", err=True),
    )  # fmt: skip
    for decoder in (teacher, student):
        decoder.set_positions(recipe.length)
    student.requires_grad_(True)
    loss = distill(student, teacher, written, _N_PROMPT, recipe, _log)
    about = card(student, text, recipe, loss)
    about["distilled_from"] = {
        "target": target,
        "draft": draft,
        "n_texts": texts,
        "divergence": "KL(target || draft), nats a token",
        "last_loss": round(loss, 4),
    }
    del about["train_loss_nats_per_byte"]
    save_model(student, output, torch.float16, about)
    typer.echo(f"last loss {loss:.4f} nats a token; in {output}")


def _rate(lr: float) -> float:
    if not 0 < lr < 1:
        raise InputError(f"found {lr}", expected="above 0 and below 1", where="--lr")
    return lr


def _log(line: dict[str, float]) -> None:
    typer.echo(json.dumps({key: round(value, 4) for key, value in line.items()}), err=True)
