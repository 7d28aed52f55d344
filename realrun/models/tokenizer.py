"""Text to token ids and back: bytes, or byte-level BPE through the package tokenizers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from psdsim.errors import InputError

if TYPE_CHECKING:
    import tokenizers

_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# llama.cpp's name of a pre-tokenizer -> how it splits text before the merges.
_SPLITS = {
    "gpt-2": "gpt2",
    "gpt2": "gpt2",
    "smollm": "digits",
    "qwen2": _WORDS % "",
    "llama-bpe": _WORDS % "{1,3}",
}
_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5  # tokenizer.ggml.token_type

SMOLLM2_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
"""The system message of SmolLM2's chat template."""


class Tokenizer(Protocol):
    """What the executor needs of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Ids it can make, from 0."""

    @property
    def eos_id(self) -> int | None:
        """The id that ends a text, if there is one."""

    @property
    def fingerprint(self) -> str:
        """Digest of the vocabulary: two models can verify each other only if theirs are equal."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, with what the model expects in front of it."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""


class ByteTokenizer:
    """Every byte of the UTF-8 text is a token; 0 is the document start.

    Parameters
    ----------
    vocab_size
        Rows of the model's embedding, at least 256; ids past 255 decode to the replacement
        character (models with random weights have them).

    Examples
    --------
    >>> tokenizer = ByteTokenizer()
    >>> tokenizer.encode("é")
    [0, 195, 169]
    >>> tokenizer.decode([0, 195, 169])
    'é'
    """

    eos_id: int | None = None

    def __init__(self, vocab_size: int = 256) -> None:
        self.vocab_size = vocab_size
        self.fingerprint = _digest([("bytes", vocab_size)])

    def encode(self, text: str) -> list[int]:
        """Return 0 and the bytes."""
        # A lone surrogate, as in an undecodable file name, is no reason to stop.
        return [0, *text.encode("utf-8", errors="replace").replace(b"\0", b"")]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; zeros are dropped, bytes that are no UTF-8 replaced."""
        # 0xFF never occurs in UTF-8.
        kept = bytes(int(i) if i < 256 else 0xFF for i in ids if i != 0)
        return kept.decode("utf-8", errors="replace")


class SubwordTokenizer:
    """A tokenizer of the package tokenizers.

    Parameters
    ----------
    inner
        It.
    eos_id
        The id that ends a text.
    bos_id
        Put in front of every text, unless `inner` does so itself.
    unused
        Ids that only pad the vocabulary; they don't count in the fingerprint.
    """

    def __init__(
        self,
        inner: tokenizers.Tokenizer,
        eos_id: int | None,
        bos_id: int | None = None,
        unused: Iterable[int] = (),
    ) -> None:
        self._inner = inner
        self._front = [] if bos_id is None else [bos_id]
        self.eos_id = eos_id
        vocabulary = inner.get_vocab(with_added_tokens=True)
        dropped = set(unused)
        kept = [(token, i) for token, i in vocabulary.items() if i not in dropped]
        self.vocab_size = max((i for _, i in kept), default=-1) + 1
        self.fingerprint = _digest(kept)

    def encode(self, text: str) -> list[int]:
        """Return ids; the names of special tokens in the text become those tokens."""
        return self._front + list(self._inner.encode(text).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text without special tokens."""
        return str(self._inner.decode([int(i) for i in ids], skip_special_tokens=True))

    def chat(self, prompt: str, system: str = SMOLLM2_SYSTEM) -> str:
        """Return the text that asks a ChatML model (SmolLM2-Instruct, Qwen) for an answer.

        Raises
        ------
        psdsim.errors.InputError
            If the vocabulary has no ChatML tokens.
        """
        if self._inner.token_to_id("<|im_start|>") is None:
            raise InputError(
                "this model's vocabulary has no '<|im_start|>'", expected="a ChatML model"
            )
        turns = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n"
        return turns + "<|im_start|>assistant\n"


def from_gguf(metadata: Mapping[str, Any], where: str) -> SubwordTokenizer:
    """Build the byte-level BPE tokenizer in a GGUF file's metadata.

    Raises
    ------
    psdsim.errors.InputError
        If there is none, or one of another kind.
    """
    library = _library(where)
    mine = {
        name.removeprefix("tokenizer.ggml."): value
        for name, value in metadata.items()
        if name.startswith("tokenizer.ggml.")
    }
    kind, split = mine.get("model"), _SPLITS.get(mine.get("pre", ""))
    if kind != "gpt2" or split is None:
        found = f"the tokenizer is {kind!r} with pre-tokenizer {mine.get('pre')!r}"
        expected = f"a byte-level BPE ('gpt2') with one of {', '.join(_SPLITS)}"
        raise InputError(found, expected=expected, where=where)
    missing = [name for name in ("tokens", "merges") if not isinstance(mine.get(name), list)]
    if missing:
        found = f"'tokenizer.ggml.{missing[0]}' is missing"
        raise InputError(found, expected="a byte-level BPE tokenizer", where=where)
    tokens, types = mine["tokens"], mine.get("token_type") or [1] * len(mine["tokens"])
    merges = [tuple(merge.split(" ", 1)) for merge in mine["merges"]]
    is_llama, is_qwen = mine["pre"] == "llama-bpe", mine["pre"] == "qwen2"
    try:
        model = library.models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=merges,
            ignore_merges=is_llama,  # as in the tokenizer.json of Llama 3
        )
    except Exception as error:  # the library's own class is Exception
        found = f"the tokenizer's merges and tokens do not fit: {error}"
        raise InputError(found, expected="merges of known tokens", where=where) from None
    inner = library.Tokenizer(model)
    if is_qwen:
        inner.normalizer = library.normalizers.NFC()
    inner.pre_tokenizer = _pre_tokenizer(library, split)
    inner.decoder = library.decoders.ByteLevel()
    pairs = list(zip(tokens, types, strict=True))
    for flag in (_CONTROL, _USER_DEFINED):
        named = [token for token, one in pairs if one == flag]
        added = [library.AddedToken(t, special=flag == _CONTROL, normalized=False) for t in named]
        inner.add_special_tokens(added) if flag == _CONTROL else inner.add_tokens(added)
    unused = [i for i, (_, one) in enumerate(pairs) if one == _UNUSED]
    bos = mine.get("bos_token_id") if mine.get("add_bos_token", is_llama) else None
    return SubwordTokenizer(inner, mine.get("eos_token_id"), bos, unused)


def from_folder(folder: Path, config: Mapping[str, Any]) -> SubwordTokenizer:
    """Read a folder's ``tokenizer.json``.

    The end of a text is the ``eos_token`` of ``tokenizer_config.json``, else the (first)
    ``eos_token_id`` of ``config.json``.

    Parameters
    ----------
    folder
        A Hugging Face model folder.
    config
        What its ``config.json`` holds.

    Raises
    ------
    psdsim.errors.InputError
        If ``tokenizer.json`` is damaged.
    """
    path = folder / "tokenizer.json"
    library = _library(str(path))
    try:
        inner = library.Tokenizer.from_file(str(path))
    except Exception:  # the library's own class is Exception
        raise InputError(
            "can't be read", expected="a tokenizer.json of the package tokenizers", where=str(path)
        ) from None
    eos = config.get("eos_token_id")
    eos_id = eos[0] if isinstance(eos, list) and eos else eos
    beside = folder / "tokenizer_config.json"
    if beside.exists():
        try:
            named = json.loads(beside.read_text(encoding="utf-8")).get("eos_token")
        except (OSError, ValueError, AttributeError):
            raise InputError("can't be read", expected="a JSON object", where=str(beside)) from None
        named = named.get("content") if isinstance(named, dict) else named
        known = inner.token_to_id(named) if isinstance(named, str) else None
        eos_id = eos_id if known is None else known
    return SubwordTokenizer(inner, eos_id if isinstance(eos_id, int) else None)


def _pre_tokenizer(library: Any, split: str) -> Any:
    pre = library.pre_tokenizers
    if split == "gpt2":
        return pre.ByteLevel(add_prefix_space=False, use_regex=True)
    if split == "digits":
        first = pre.Digits(individual_digits=True)
        return pre.Sequence([first, pre.ByteLevel(add_prefix_space=False, use_regex=True)])
    first = pre.Split(library.Regex(split), behavior="isolated")
    return pre.Sequence([first, pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def _library(where: str) -> Any:
    try:
        import tokenizers
    except ImportError:
        raise InputError(
            "its tokenizer needs the package tokenizers",
            expected="an installation with `pip install 'psdsim[hf]'`",
            where=where,
        ) from None
    return tokenizers


def _digest(vocabulary: Iterable[tuple[str, int]]) -> str:
    digest = hashlib.sha256()
    for token, i in sorted(vocabulary, key=lambda pair: pair[1]):
        digest.update(f"{i}\0{token}\0".encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()[:16]
