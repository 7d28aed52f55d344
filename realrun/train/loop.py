"""One loop for training and distillation: Muon beside AdamW, warm-up, linear decay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.nn import functional

from realrun.models.decoder import CausalAttention, Decoder

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(logits of all positions, windows of tokens) -> scalar."""
Log = Callable[[dict[str, float]], None]

_WARM_UP = 0.02
_DECAY = 0.6  # the last share of the steps, over which the learning rate falls to 0


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Parameters
    ----------
    steps
        Updates.
    batch, length
        Windows an update, tokens a window.
    lr
        Peak learning rate of both optimisers.
    weight_decay
        Decoupled decay of matrices.
    seed
        Of the initial weights and of the windows.
    log_every
        Updates between log lines.
    """

    steps: int
    batch: int = 16
    length: int = 256
    lr: float = 3e-3
    weight_decay: float = 0.05
    seed: int = 0
    log_every: int = 50


def logits_of(decoder: Decoder, tokens: torch.Tensor) -> torch.Tensor:
    """Return logits of whole windows, shape (n, length, vocab_size); tokens (n, length)."""
    n, length = tokens.shape
    config = decoder.config
    attend = CausalAttention(n, length, config.n_heads // config.n_kv_heads, tokens.device)
    out: torch.Tensor = decoder(tokens.reshape(-1), attend)
    return out.view(n, length, -1)


def next_token_loss(logits: torch.Tensor, windows: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy, nats a token; windows hold one token more than logits."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), windows[:, 1:].reshape(-1))


def train(
    decoder: Decoder,
    batches: Iterator[torch.Tensor],
    recipe: Recipe,
    loss_of: Loss = next_token_loss,
    log: Log | None = None,
) -> float:
    """Train in place and return the mean loss of the last log interval.

    Matrices inside the layers are updated by Muon (Jordan et al. 2024), everything else by
    AdamW. Products run in bfloat16 under autocast, weights stay float32.

    Parameters
    ----------
    decoder
        The model; it must have rotary tables for `recipe.length` tokens.
    batches
        Windows of tokens, shape (batch, length + 1).
    recipe
        How.
    loss_of
        What is minimised.
    log
        Told of step, loss, tokens and seconds.
    """
    inner = [p for name, p in decoder.named_parameters() if name.startswith("layers.")]
    matrices = [p for p in inner if p.ndim == 2]
    others = [p for p in decoder.parameters() if not any(p is m for m in matrices)]
    optimisers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(
            matrices, lr=recipe.lr, weight_decay=recipe.weight_decay,
            adjust_lr_fn="match_rms_adamw",
        ),
        torch.optim.AdamW(others, lr=recipe.lr, weight_decay=0.0, betas=(0.9, 0.95)),
    ]  # fmt: skip
    device = decoder.norm.device
    decoder.train()
    total, count, mean, start = 0.0, 0, float("nan"), time.perf_counter()
    for step in range(1, recipe.steps + 1):
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = recipe.lr * _schedule(step / recipe.steps)
        windows = next(batches).to(device)
        with torch.autocast(device.type, torch.bfloat16):
            loss = loss_of(logits_of(decoder, windows[:, :-1]), windows)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        total, count = total + loss.item(), count + 1
        if step % recipe.log_every == 0 or step == recipe.steps:
            mean = total / count
            tokens = float(step * recipe.batch * recipe.length)
            if log is not None:
                elapsed = time.perf_counter() - start
                log({"step": step, "loss": mean, "tokens": tokens, "seconds": elapsed})
            total, count = 0.0, 0
    decoder.eval()
    return mean


def _schedule(share: float) -> float:
    """Return the learning rate relative to its peak at a share of the run."""
    return min(1.0, share / _WARM_UP, (1.0 - share) / _DECAY + 1e-3)


@torch.inference_mode()
def evaluate(decoder: Decoder, windows: torch.Tensor, batch: int = 16) -> float:
    """Return the mean cross-entropy on windows, shape (n, length + 1), nats a token, float32."""
    losses = [
        next_token_loss(logits_of(decoder, part[:, :-1]), part)
        for part in torch.split(windows, batch)
    ]
    return float(torch.stack(losses).mean())
