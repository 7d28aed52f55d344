"""Files of recorded rounds: what is read, and what is said about bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from psdsim.acceptance import Replay
from psdsim.errors import InputError

ROUNDS = ((2, 0, 1), (1,), (0, 2))

GOOD = {
    "a.json": "[[2, 0, 1], [1], [0, 2]]",
    "objects.json": '[{"accepted": [2, 0, 1]}, {"accepted": [1], "prompt": "x"}, [0, 2]]',
    "unsorted.json": '[{"request": 12, "accepted": [1]}, {"request": 100, "accepted": [0, 2]},'
    ' {"request": 9, "accepted": [2, 0, 1]}]',
    "a.jsonl": "[2, 0, 1]\n\n[1]\n[0, 2]\n",
    "crlf.jsonl": "[2, 0, 1]\r\n[1]\r\n[0, 2]\r\n",
    "bom.jsonl": '\ufeff{"accepted": [2, 0, 1]}\n{"accepted": [1]}\n{"accepted": [0, 2]}',
    "separator.jsonl": '{"accepted": [2, 0, 1], "text": "\u2028"}\n[1]\n[0, 2]',
    "run.jsonl": '{"metadata": {"k": 2}}\n{"type": "Step", "tid": 0}\n'
    '{"type": "Request", "request_id": 7, "accepted": [1], "tested": [2]}\n'
    '{"type": "Request", "request_id": 3, "accepted": [2, 0, 1], "request": "x"}\n'
    '{"type": "Span", "kind": "draft"}\n'
    '{"type": "Request", "request_id": 9, "accepted": [0, 2]}',
    "a.csv": "request,accepted\n0,2\n0,0\n0,1\n1,1\n2,0\n2,2\n",
    "interleaved.csv": "note,accepted,request\nx,2,0\n,1,1\n,0,0\n,0,2\n\n,1,0\n,2,2\n",
    "unsorted.csv": "request,accepted\n10,0\n10,2\n9,1\n8,2\n8,0\n8,1\n",
    "names.csv": "request, accepted\r\nb,2\r\nb,0\r\na,1\r\nb,1\r\nc,0\r\nc,2\r\n",
    "UPPER.CSV": "request,accepted\n0,2\n0,0\n0,1\n1,1\n2,0\n2,2",
}


@pytest.mark.parametrize("name", GOOD)
def test_good_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(GOOD[name].encode())
    model = Replay(k=2, path=name)
    read = model.resolve(tmp_path)
    assert (read.rounds, read.path, read.k) == (ROUNDS, None, 2)
    assert model.rounds is None  # frozen: resolving makes a new model
    assert read.resolve(tmp_path) is read


BAD = {
    "empty.json": ("", "empty.json: is not JSON"),
    "object.json": ("{}", "object.json: the file is not a list; expected a list of lists"),
    "none.json": ("[]", "none.json: the recording is empty"),
    "noround.json": ("[[1], []]", "noround.json: request 1 has no rounds"),
    "flat.json": ("[1, 2]", "flat.json: entry 0: found 1; expected a list of whole numbers 0 to 2"),
    "float.json": ("[[1], [1.0]]", r"float.json: entry 1: found \[1.0\]"),
    "bool.json": ("[[true]]", r"bool.json: entry 0: found \[True\]"),
    "big.json": ("[[1], [3]]", r"big.json: entry 1: found \[3\]; expected .* 0 to 2"),
    "digits.json": ("[[" + "9" * 5000 + "]]", "digits.json: is not JSON that can be read"),
    "deep.json": ("[" * 200_000, "deep.json: is not JSON"),
    "key.jsonl": ('[1]\n{"acepted": [1]}\n', "key.jsonl: line 2: found no list of accepted drafts"),
    "cut.jsonl": ("[1]\n\n[2", "cut.jsonl: line 3: is not JSON"),
    "steps.jsonl": ('{"metadata": {}}\n{"type": "Step"}', "steps.jsonl: the recording is empty"),
    "older.jsonl": ('{"type": "Request", "request_id": 0}', "line 1: found no list of accepted"),
    "negative.jsonl": ("[1]\n[-1]", r"negative.jsonl: line 2: found \[-1\]"),
    "name.jsonl": ('{"request": 1.5, "accepted": [1]}', "line 1: request is 1.5"),
    "twice.jsonl": ('{"request": 1, "accepted": [1]}\n{"request": 1, "accepted": [1]}',
                    "twice.jsonl: line 2: request 1 stands twice"),
    "empty.csv": ("", "empty.csv: line 1: the column 'request' is missing"),
    "header.csv": ("request,accepted\n", "header.csv: the recording is empty"),
    "column.csv": ("request,acepted\n0,1\n", "line 1: the column 'accepted' is missing"),
    "double.csv": ("request,accepted,accepted\n0,1,2\n", "column 'accepted' stands twice"),
    "word.csv": ("request,accepted\n0,1\n\n0,many\n", "line 4: accepted is 'many'; expected a"),
    "blank.csv": ("request,accepted\n0,\n", "line 2: accepted is ''"),
    "more.csv": ("request,accepted\n0,3\n", "line 2: accepted is '3'; expected a whole number 0"),
    "minus.csv": ("request,accepted\n0,-1\n", "line 2: accepted is '-1'"),
    "super.csv": ("request,accepted\n0,²\n", "line 2: accepted is '²'"),
    "long.csv": ("request,accepted\n0," + "9" * 5000 + "\n", "line 2: accepted is '999"),
    "nameless.csv": ("request,accepted\n,1\n", "line 2: request is empty"),
    "short.csv": ("accepted,request\n1\n", "line 2: has 1 fields; expected 2 as in the header"),
    "wide.csv": ("request,accepted\n0,1,2\n", "line 2: has 3 fields"),
    "quote.csv": ('request,accepted\n"0,1\n', "quote.csv: is not CSV"),
    "rounds.txt": ("[[1]]", r"has the ending '.txt'; expected .json, .jsonl or .csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_sentence_with_the_place(tmp_path: Path, name: str) -> None:
    text, message = BAD[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        Replay(k=2, path=name).resolve(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone.json: can't be read: No such file"):
        Replay(k=2, path="gone.json").resolve(tmp_path)
    (tmp_path / "latin.json").write_bytes(b"[[1]] \xff")
    with pytest.raises(InputError, match=r"latin.json: can't be read"):
        Replay(k=2, path="latin.json").resolve(tmp_path)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match=r"folder.json: can't be read"):
        Replay(k=2, path="folder.json").resolve(tmp_path)
