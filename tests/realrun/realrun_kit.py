"""Small parts for executor tests: models that are tables, runners that keep a log."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from psdsim.schedules import SCHEDULES, Schedule  # noqa: E402
from realrun.cli.main import main  # noqa: E402
from realrun.drafters import Drafted, Drafter, ModelDrafter  # noqa: E402
from realrun.executor import Executor, GreedyRule, Job, Rule, RunResult  # noqa: E402
from realrun.models.config import ModelConfig  # noqa: E402
from realrun.models.decoder import CausalAttention, Decoder  # noqa: E402
from realrun.models.folder import save_model  # noqa: E402
from realrun.models.make import make_forward  # noqa: E402
from realrun.pair import Pair  # noqa: E402
from realrun.target import TargetRunner  # noqa: E402
from realrun.workers import Done, DraftWork, TargetWork, ThreadWorker  # noqa: E402

run_module: Any = importlib.import_module("realrun.cli.run")
NAMES = tuple(SCHEDULES)


def make_job(
    output: int | list[int], prompts: list[list[int]], arrival: list[float] | None = None
) -> Job:
    lengths = np.broadcast_to(np.asarray(output, dtype=np.int64), (len(prompts),)).copy()
    arrivals = np.zeros(len(prompts)) if arrival is None else np.array(arrival, dtype=float)
    return Job(tuple(np.array(p, dtype=np.int64) for p in prompts), lengths, arrivals)


def make_schedule(name: str, k: int, batch: int) -> Schedule:
    cls = SCHEDULES[name]
    return cls(k, batch * cls.n_groups)


def room(job: Job, k: int) -> int:
    return job.max_length + 2 * k + 2


@contextmanager
def threads(target: Any, draft: Any | None) -> Iterator[Pair]:
    """Run runners in threads of this process."""
    workers = [
        ThreadWorker(lambda r=runner: r, None, name)
        for runner, name in ((target, "target"), (draft, "draft"))
        if runner is not None
    ]
    try:
        for worker in workers:
            worker.ready()
        yield Pair(workers[0], workers[1] if draft is not None else None)
    finally:
        for worker in workers:
            worker.close()


def execute(
    schedule: Schedule, job: Job, target: Any, draft: Any | None, rule: Rule | None = None
) -> RunResult:
    with threads(target, draft) as pair:
        return Executor(schedule, job, rule or GreedyRule(), pair.target, pair.draft).run()


# --- runners without a model ------------------------------------------------------------------

Next = Callable[[list[int]], int]
Sure = Callable[[list[int]], float]


class LoggedTarget:
    """Chooses by a function of the text; the log holds every pass as it was asked for.

    Like a cache it knows a text only by what was fed, and where.
    """

    def __init__(self, choose: Next) -> None:
        self.choose = choose
        self.texts: dict[int, list[int]] = {}
        self.log: list[tuple[list[int], list[int], list[list[int]]]] = []
        self.before: Callable[[int], None] = lambda _: None

    def run(self, work: Any) -> Done:
        assert isinstance(work, TargetWork)
        self.before(len(self.log))
        start, choices = time.perf_counter(), []
        parts = np.split(work.tokens, np.cumsum(work.lengths)[:-1])
        for slot, begin, part in zip(work.slots.tolist(), work.starts.tolist(), parts, strict=True):
            text = self.texts.setdefault(slot, [])
            assert begin <= len(text), "a gap in the cache"
            for i, token in enumerate(part.tolist()):
                text[begin + i :] = [token]
                if not work.last_only or i == part.size - 1:
                    choices.append(self.choose(text))
        self.log.append((work.slots.tolist(), work.starts.tolist(), [p.tolist() for p in parts]))
        return Done(start, time.perf_counter(), np.array(choices, dtype=np.int64))


class LoggedDrafter(Drafter):
    """Drafts by a function of the text; the log holds (slots, keep, fed tokens, counts).

    How sure it is of a token is another function, of the text that ends with it.
    """

    def __init__(
        self, choose: Next, n_slots: int = 8, max_length: int = 256, sure: Sure | None = None
    ) -> None:
        super().__init__(n_slots, max_length)
        self.choose = choose
        self.sure = sure
        self.log: list[tuple[list[int], list[int], list[list[int]], list[int]]] = []
        self.before: Callable[[int], None] = lambda _: None

    def clock(self) -> float:
        return time.perf_counter()

    def changed(self, slots: Any, keep: Any) -> None:
        pass

    def run(self, work: Any) -> Done:
        assert isinstance(work, DraftWork)
        self.before(len(self.log))
        assert (work.keep <= self.known[work.slots]).all() or not work.counts.any()
        parts = np.split(work.tokens, np.cumsum(work.lengths)[:-1])
        fed = [part.tolist() for part in parts]
        self.log.append((work.slots.tolist(), work.keep.tolist(), fed, work.counts.tolist()))
        return super().run(work)

    def draft(
        self, requests: Any, slots: Any, counts: Any, *, confidences: bool = False
    ) -> Drafted:
        out = np.zeros((slots.size, int(counts.max(initial=0))), dtype=np.int64)
        sure = np.zeros(out.shape, dtype=np.float32)
        for i, (slot, count) in enumerate(zip(slots.tolist(), counts.tolist(), strict=True)):
            for j in range(count):
                known = int(self.known[slot])
                out[i, j] = self.choose(self.texts[slot, :known].tolist())
                self.texts[slot, known] = out[i, j]
                self.known[slot] = known + 1
                if confidences and self.sure is not None:
                    sure[i, j] = self.sure(self.texts[slot, : known + 1].tolist())
        return Drafted(out, None, sure if confidences and self.sure is not None else None)


class Blank:
    """Target and drafter that always say 0: for runs that look at counts alone."""

    def run(self, work: Any) -> Done:
        start = time.perf_counter()
        if isinstance(work, DraftWork):
            shape: Any = (work.counts.size, int(work.counts.max(initial=0)))
        else:
            shape = work.slots.size if work.last_only else work.tokens.size
        return Done(start, time.perf_counter(), np.zeros(shape, dtype=np.int64))


# --- models that are tables -------------------------------------------------------------------


class TableForward:
    """Logits by the last two tokens of the text, which it knows by slot as a cache does."""

    def __init__(self, table: np.ndarray, n_slots: int, max_length: int) -> None:
        self.table = torch.from_numpy(table.astype(np.float32))  # (vocab, vocab, vocab)
        self.texts = np.zeros((n_slots, max_length), dtype=np.int64)
        self.cache = SimpleNamespace(n_slots=n_slots, max_length=max_length)
        self.decoder = SimpleNamespace(norm=torch.zeros(1))

    def __call__(self, rows: Any, tokens: Any, *, last_only: bool = False) -> Any:
        slots, positions = rows.flat()
        fed = np.asarray(tokens)
        self.texts[slots, positions] = fed
        before = self.texts[slots, np.maximum(positions - 1, 0)]
        if last_only:
            last = rows.last()
            before, fed = before[last], fed[last]
        return self.table[before, fed]


def table_pair(
    p: np.ndarray, q: np.ndarray, n_slots: int, max_length: int, temperature: float, seed: int = 0
) -> tuple[TargetRunner, ModelDrafter]:
    """Return runners whose laws are p and q, shape (vocab, vocab, vocab)."""
    scale = temperature if temperature > 0 else 1.0
    target, draft = (TableForward(scale * np.log(x), n_slots, max_length) for x in (p, q))
    return TargetRunner(target, temperature), ModelDrafter(draft, temperature, seed)


# --- tiny models ------------------------------------------------------------------------------


def tiny(hidden: int = 32, layers: int = 3, **changes: Any) -> ModelConfig:
    data = {
        "model_type": "llama",
        "vocab_size": 256,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
    }
    return ModelConfig.from_hf({**data, **changes})


def tiny_decoder(config: ModelConfig, seed: int = 0) -> Decoder:
    decoder = Decoder(config).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for parameter in decoder.parameters():
        if parameter.ndim == 1:
            parameter.fill_(1.0)
        else:
            parameter.normal_(0.0, 0.2, generator=generator)
    return decoder


def perturbed(decoder: Decoder, noise: float, seed: int = 1) -> Decoder:
    """Return a copy whose matrices have noise in proportion to their size."""
    other = tiny_decoder(decoder.config, seed)
    for mine, theirs in zip(decoder.parameters(), other.parameters(), strict=True):
        theirs.copy_(mine if mine.ndim == 1 else mine + noise * theirs)
    return other


def target_of(decoder: Decoder, n_slots: int, max_length: int, temperature=0.0) -> TargetRunner:
    return TargetRunner(make_forward(decoder, n_slots, max_length), temperature)


def drafter_of(decoder: Decoder, n_slots: int, max_length: int, temperature=0.0) -> ModelDrafter:
    return ModelDrafter(make_forward(decoder, n_slots, max_length), temperature, seed=0)


def full_logits(decoder: Decoder, tokens: list[int]) -> Any:
    """Return logits after every token of a text, from one pass without a cache."""
    config = decoder.config
    attend = CausalAttention(1, len(tokens), config.n_heads // config.n_kv_heads, "cpu")
    with torch.inference_mode():
        return decoder(torch.tensor(tokens), attend)


def saved(decoder: Decoder, folder: Path) -> str:
    """Write a model to a folder and return its spec."""
    save_model(decoder, folder, torch.float32, {})
    return str(folder)


def ragged(n: int, seed: int = 0, vocab: int = 256, longest: int = 9) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, vocab, int(rng.integers(1, longest + 1))).tolist() for _ in range(n)]


# --- the command line -------------------------------------------------------------------------

SMALL = ("--prompt-tokens", "5", "--output-tokens", "7", "--requests", "4", "--batch", "2")


def run_main(models: list[str], *arguments: str) -> int:
    """Run the command line on a small job; return its exit code."""
    return main(["run", *SMALL, *models, *arguments])


def random_spec(folder: Path, name: str, config: ModelConfig) -> str:
    """Write a config and return the spec of a model with random weights."""
    path = folder / name
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config.to_hf()))
    return f"random:{path}/config.json"


class Trap:
    """Does something in the middle of a run of the command line.

    Parameters
    ----------
    monkeypatch
        Undoes it.
    where
        (run, target pass) at which it happens; run 0 is the warm-up.
    action
        What.
    """

    def __init__(
        self, monkeypatch: Any, where: tuple[int, int], action: Callable[[], None]
    ) -> None:
        self.run, self.passes, self.sprung = -1, 0, False
        run_once, answer = run_module.run_once, TargetRunner.run

        def runs(*args: Any) -> Any:
            self.run, self.passes = self.run + 1, 0
            return run_once(*args)

        def one_pass(runner: Any, work: Any) -> Any:
            done = answer(runner, work)
            self.passes += 1
            if (self.run, self.passes) == where:
                self.sprung = True
                action()
            return done

        monkeypatch.setattr(run_module, "run_once", runs)
        monkeypatch.setattr(TargetRunner, "run", one_pass)
