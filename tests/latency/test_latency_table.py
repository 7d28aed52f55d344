"""Step-time tables: interpolation against SciPy, flags, holes, CSV files."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.interpolate import RegularGridInterpolator

from psdsim.errors import InputError
from psdsim.latency import ConstantStepTime, Placement, TableStepTime, fit_affine

BATCH, QUERY, CONTEXT = (1.0, 2.0, 8.0, 32.0), (1.0, 4.0, 9.0), (0.0, 512.0, 4096.0)
TIMES = np.random.default_rng(0).uniform(0.01, 0.05, (4, 3, 3))
ROWS = tuple(
    (n, q, c, float(TIMES[i, j, m]))
    for (i, n), (j, q), (m, c) in product(enumerate(BATCH), enumerate(QUERY), enumerate(CONTEXT))
)
TABLE = TableStepTime(rows=ROWS)
SCIPY = RegularGridInterpolator((BATCH, QUERY, CONTEXT), TIMES)
BEYOND = RegularGridInterpolator(  # linear in each axis beyond the ends, as we say we do
    (BATCH, QUERY, CONTEXT), TIMES, bounds_error=False, fill_value=None
)


@given(st.floats(1, 32), st.floats(1, 9), st.floats(0, 4096))
def test_inside_it_is_scipys_linear_interpolation(n: float, q: float, c: float) -> None:
    timer = TABLE.bind(Placement())
    expected = float(np.squeeze(SCIPY((n, q, c))))
    assert timer(n, n * q, n * c) == pytest.approx(expected, rel=1e-9)
    assert timer.notes == set()


@given(st.floats(0.5, 64), st.floats(0.5, 20), st.floats(0, 9000))
def test_outside_it_extends_the_last_piece(n: float, q: float, c: float) -> None:
    expected = float(np.squeeze(BEYOND((n, q, c))))
    assert TABLE.bind(Placement())(n, n * q, n * c) == pytest.approx(max(expected, 0.0), abs=1e-9)


def test_on_the_points_it_is_the_points_exactly() -> None:
    timer = TABLE.bind(Placement())
    for n, q, c, time_s in ROWS:
        assert timer(n, n * q, n * c) == time_s


def test_a_copy_with_other_rows_uses_them() -> None:
    # Nothing derived from the old rows may stay behind in the copy.
    assert TABLE.bind(Placement())(1, 1, 0) == TIMES[0, 0, 0]
    changed = TABLE.model_copy(update={"rows": ((1, 1, 0, 7.0),)})
    assert changed.bind(Placement())(1, 1, 0) == 7.0


def test_order_of_rows_does_not_matter() -> None:
    shuffled = [ROWS[i] for i in np.random.default_rng(1).permutation(len(ROWS))]
    a, b = TABLE.bind(Placement()), TableStepTime(rows=tuple(shuffled)).bind(Placement())
    for shape in [(3, 9, 100), (20, 60, 9000), (50, 50, 0)]:
        assert a(*shape) == b(*shape)


def test_each_axis_flags_its_first_step_outside_once() -> None:
    timer = TABLE.bind(Placement())
    timer(32, 32 * 9, 32 * 4096)
    assert timer.notes == set()
    timer(33, 33 * 9, 33 * 4096)
    timer(64, 64 * 9, 64 * 4096)
    timer(4, 4 * 10, 4 * 5000)
    assert {note for note in timer.notes if "outside" in note} == {
        "n_seqs 33 lies outside the table (1 to 32): extended linearly",
        "query_length 10 lies outside the table (1 to 9): extended linearly",
        "context 5000 lies outside the table (0 to 4096): extended linearly",
    }


def test_a_falling_extension_stops_at_zero_and_says_so() -> None:
    timer = TableStepTime(rows=((1, 1, 0, 2.0), (2, 1, 0, 1.0))).bind(Placement())
    assert timer(2.5, 2.5, 0) == 0.5
    assert not any("below 0" in note for note in timer.notes)
    assert timer(4, 4, 0) == 0.0
    assert any("below 0" in note for note in timer.notes)


def test_an_axis_of_one_point_means_no_dependence() -> None:
    timer = TableStepTime(rows=((1, 1, 100, 1.0), (3, 1, 100, 2.0))).bind(Placement())
    assert timer(2, 2, 200) == 1.5
    assert timer.notes == set()
    assert timer(2, 8, 200_000) == 1.5
    assert timer.notes == {
        "query_length 4 lies outside the table (1 to 1): taken as it is there",
        "context 100000 lies outside the table (100 to 100): taken as it is there",
    }


def test_over_gives_the_same_floats_and_broadcasts() -> None:
    timer = TABLE.bind(Placement())
    n = np.arange(1, 40)
    kv = np.array([[0.0], [777.0], [4000.0]]) * n
    over = timer.over(n, 5 * n, kv)
    assert over.shape == (3, 39)
    fresh = TABLE.bind(Placement())
    for i, j in product(range(3), range(39)):
        assert over[i, j] == fresh(int(n[j]), int(5 * n[j]), float(kv[i, j]))


@pytest.mark.parametrize(
    "rows, message",
    [
        (ROWS[:-1], r"no row at n_seqs 32, query_length 9, context 4096 \(1 missing in all\)"),
        (ROWS[1:-1], r"no row at n_seqs 1, query_length 1, context 0 \(2 missing in all\)"),
        ((*ROWS, ROWS[5]), "two rows at n_seqs 1, query_length 4, context 4096"),
        ((), "at least 1 item"),
        (((1, 1, 0, 0.0),), "greater than 0"),
        (((0, 1, 0, 1.0),), "greater than 0"),
        (((0.5, 1, 0, 1.0),), "a row at n_seqs 0.5, query_length 1, context 0; expected at least"),
        (((2, 0.5, 0, 1.0), (1, 1, 0, 1.0)), "a row at n_seqs 2, query_length 0.5, context 0"),
        (((1, 1, -1, 1.0),), "greater than or equal to 0"),
        (((1, 1, 0, float("inf")),), "finite"),
        (((1, 1, 0, True),), "truth value"),
    ],
)
def test_bad_rows_are_refused(rows: tuple[tuple[float, ...], ...], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TableStepTime(rows=rows)


def test_exactly_one_source() -> None:
    for given_ in ({}, {"rows": ROWS, "path": "x.csv"}):
        with pytest.raises(ValidationError, match="either path or rows"):
            TableStepTime(**given_)
    with pytest.raises(InputError, match="has not been read"):
        TableStepTime(path="x.csv").bind(Placement())
    with pytest.raises(InputError, match="has not been read"):
        fit_affine(TableStepTime(path="x.csv"))


CSV = {
    "seconds.csv": "n_seqs,query_length,context,time_s\n1,1,0,0.5\n2,1,0,0.75\n",
    "ms.csv": "context,time_ms,n_seqs,query_length\r\n0,500,1,1\r\n0,750,2,1\r\n",
    "us.csv": "# measured by hand\n\nn_seqs,time_us\n1,500000\n# a comment\n2,750000",
    "note.csv": '\ufeff n_seqs , note,time_s\n1,"a, b",0.5\n2,,7.5e-1\n',
}


@pytest.mark.parametrize("name", CSV)
def test_csv_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(CSV[name].encode())
    table = TableStepTime(path=name)
    assert table.rows is None
    read = table.resolve(tmp_path)
    assert read.path is None
    assert read.rows is not None
    assert np.array(read.rows) == pytest.approx(np.array([[1, 1, 0, 0.5], [2, 1, 0, 0.75]]))
    assert read.bind(Placement())(1.5, 1.5, 0) == pytest.approx(0.625)
    assert read.resolve(tmp_path) is read


HEAD = "n_seqs,query_length,context,time_s\n"
BAD_CSV = {
    "empty.csv": ("", "empty.csv: the file is empty; expected a header and rows"),
    "comment.csv": ("# nothing\n", "comment.csv: the file is empty"),
    "norows.csv": (HEAD, "norows.csv: the file has a header and no rows"),
    "typo.csv": ("# x\nn_seq,time_s\n1,1\n",
                 "line 2: unknown column 'n_seq'; did you mean 'n_seqs'"),
    "nobatch.csv": ("context,time_s\n1,1\n", "line 1: the column 'n_seqs' is missing"),
    "notime.csv": ("n_seqs,context\n1,1\n", "line 1: there are 0 time columns"),
    "twotimes.csv": ("n_seqs,time_s,time_ms\n1,1,1\n", "line 1: there are 2 time columns"),
    "double.csv": ("n_seqs,n_seqs,time_s\n1,2,1\n", "line 1: the column 'n_seqs' stands twice"),
    "short.csv": (HEAD + "1,1,0,1\n\n1,1\n", "line 4: has 2 fields; expected 4 as in the header"),
    "long.csv": (HEAD + "1,1,0,1,7\n", "line 2: has 5 fields"),
    "word.csv": (HEAD + "1,1,0,1\n#\n2,one,0,1\n", "line 4: query_length is 'one'; expected a"),
    "nan.csv": (HEAD + "1,1,nan,1\n", "line 2: context is 'nan'"),
    "inf.csv": (HEAD + "1,1,0,1e999\n", "line 2: time_s is '1e999'"),
    "low.csv": (HEAD + "0,1,0,1\n", "line 2: n_seqs is '0'; expected a number of at least 1"),
    "zero.csv": (HEAD + "1,1,0,0\n", "line 2: time_s is 0; expected above 0"),
    "blank.csv": (HEAD + "1,,0,1\n", "line 2: query_length is ''"),
    "quote.csv": (HEAD + '1,"1,0,1\n2,1,0,1\n', "line 2: is not CSV"),
    "hole.csv": (HEAD + "1,1,0,1\n2,4,0,1\n", "hole.csv: the step-time table has no row at"),
    "twice.csv": (HEAD + "1,1,0,1\n1,1,0,2\n", "twice.csv: the step-time table has two rows at n"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CSV)
def test_bad_csv_files_name_file_and_line(tmp_path: Path, name: str) -> None:
    text, message = BAD_CSV[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        TableStepTime(path=name).resolve(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_csv_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone.csv: can't be read: No such file"):
        TableStepTime(path="gone.csv").resolve(tmp_path)
    (tmp_path / "utf16.csv").write_bytes("n_seqs,time_s".encode("utf-16"))
    with pytest.raises(InputError, match=r"utf16.csv: can't be read"):
        TableStepTime(path="utf16.csv").resolve(tmp_path)


def test_models_without_files_resolve_to_themselves(tmp_path: Path) -> None:
    model = ConstantStepTime(time_s=1.0)
    assert model.resolve(tmp_path) is model


# Fits.


def affine_rows(
    a: float, b: float, c: float, d: float, query: tuple[int, ...], context: tuple[int, ...]
) -> tuple[tuple[float, ...], ...]:
    return tuple(
        (n, q, x, a + b * n + c * n * q + d * n * x)
        for n, q, x in product((1, 4, 16, 64), query, context)
    )


def test_fit_finds_an_affine_law_back() -> None:
    law = (5e-3, 2e-5, 3e-6, 4e-9)
    fit = fit_affine(TableStepTime(rows=affine_rows(*law, (1, 2, 5), (0, 500, 4000))))
    model = fit.model
    found = (model.base_s, model.per_sequence_s, model.per_token_s, model.per_kv_token_s)
    assert found == pytest.approx(law, rel=1e-6)
    assert fit.worst_error < 1e-9


@pytest.mark.parametrize(
    "query, context, expected",
    [  # what the grid can't tell apart goes to the tokens, then the sequences, then the cache
        ((1,), (0, 1000), (5e-3, 0.0, 2.3e-5, 4e-9)),
        ((2,), (0, 1000), (5e-3, 0.0, 2e-5 / 2 + 3e-6, 4e-9)),
        ((1, 4), (1000,), (5e-3, 2.4e-5, 3e-6, 0.0)),
        ((1,), (1000,), (5e-3, 0.0, 2.7e-5, 0.0)),
        ((1, 4), (0,), (5e-3, 2e-5, 3e-6, 0.0)),
    ],
)
def test_fit_on_grids_that_can_not_tell_all_slopes(
    query: tuple[int, ...], context: tuple[int, ...], expected: tuple[float, ...]
) -> None:
    fit = fit_affine(TableStepTime(rows=affine_rows(5e-3, 2e-5, 3e-6, 4e-9, query, context)))
    model = fit.model
    found = (model.base_s, model.per_sequence_s, model.per_token_s, model.per_kv_token_s)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)
    assert fit.worst_error < 1e-9


def test_fit_of_one_point_is_a_constant() -> None:
    fit = fit_affine(TableStepTime(rows=((8, 4, 100, 0.02),)))
    assert fit.model.base_s == pytest.approx(0.02)
    assert (fit.model.per_sequence_s, fit.model.per_token_s, fit.model.per_kv_token_s) == (0, 0, 0)


def test_fit_reports_its_errors_and_never_goes_negative() -> None:
    # A falling time has a slope of 0, not below: base b minimises (b/1 - 1)^2 + (b/2 - 1)^2,
    # so b = (1 + 1/2) / (1 + 1/4) = 1.2; errors 0.2 and 0.4.
    fit = fit_affine(TableStepTime(rows=((1, 1, 0, 2.0), (2, 1, 0, 1.0))))
    assert fit.model.base_s == pytest.approx(1.2)
    assert fit.model.per_token_s == 0.0
    assert fit.worst_error == pytest.approx(0.4)
    assert fit.median_error == pytest.approx(0.3)
    timer = fit.model.bind(Placement())
    assert abs(timer(1, 1, 0) / 2.0 - 1.0) == pytest.approx(fit.worst_error)
