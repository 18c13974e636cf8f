"""Features on disk: every format gives the rows that were written, bad files say so."""

import os

import numpy as np
import pytest

from tagkin import memory_budget
from tagkin.errors import InvalidInput
from tagkin.feature_files import files as files_module
from tagkin.feature_files import open_features

pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DTYPES = ("float16", "float32", "int8")


def made(dtype="float32", n=103, d=7):
    return (10 * np.random.default_rng(0).standard_normal((n, d))).astype(dtype)


def as_npy(X, path):
    np.save(path / "x.npy", X)
    return path / "x.npy"


def as_shards(X, path):
    folder = path / "shards"
    folder.mkdir()
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(folder / f"{i:03d}.npy", part)
    (folder / "README.txt").write_text("not a shard")
    (folder / "._000.npy").write_bytes(b"what macOS puts beside a file on a foreign disk")
    return folder


def as_parquet_lists(X, path):
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), X.shape[1])
    names = pyarrow.array([str(i) for i in range(len(X))])
    table = pyarrow.table({"name": names, "features": column})
    pq.write_table(table, path / "x.parquet", row_group_size=20)
    return path / "x.parquet"


def as_parquet_large_lists(X, path):
    kind = pyarrow.large_list(pyarrow.from_numpy_dtype(X.dtype))  # as Polars writes them
    table = pyarrow.table({"features": pyarrow.array(list(X), kind)})
    pq.write_table(table, path / "x.parquet", row_group_size=20)
    return path / "x.parquet"


def as_parquet_columns(X, path):
    table = pyarrow.table({f"f{j}": X[:, j] for j in range(X.shape[1])})
    pq.write_table(table, path / "x.parquet", row_group_size=20)
    return path / "x.parquet"


WRITERS = (as_npy, as_shards, as_parquet_lists, as_parquet_large_lists, as_parquet_columns)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_was_written_is_read(write, dtype, tmp_path):
    X = made(dtype)
    files = open_features(write(X, tmp_path))
    assert files.shape == X.shape
    assert files.dtype == X.dtype
    assert len(files) == len(X)
    for start, stop in ((0, 103), (0, 0), (17, 18), (30, 80)):
        block = files.read(start, stop)
        assert block.dtype == X.dtype
        np.testing.assert_array_equal(block, X[start:stop])
    rows = np.array([0, 3, 34, 35, 60, 102])
    np.testing.assert_array_equal(files.take(rows), X[rows])


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("start", [0, 24, 25, 103])
def test_blocks_are_all_rows_within_the_budget(write, start, tmp_path):
    X = made()
    files = open_features(write(X, tmp_path))
    with memory_budget(3 * 8 * 28):
        blocks = list(files.blocks(start))
    assert all(rows.stop - rows.start == len(block) <= 8 for rows, block in blocks)
    assert all(rows.stop % 8 == 0 or rows.stop == 103 for rows, _ in blocks)
    joined = np.concatenate([np.empty((0, 7)), *(block for _, block in blocks)])
    np.testing.assert_array_equal(joined, X[start:])


def test_an_error_in_the_reading_thread_arrives(tmp_path):
    path = as_npy(made(), tmp_path)
    files = open_features(path)
    path.write_bytes(path.read_bytes()[:1000])
    with memory_budget(3 * 8 * 28), pytest.raises(InvalidInput, match="ends before row"):
        list(files.blocks())


def test_bad_files_are_named(tmp_path):
    def refused(message):
        return pytest.raises(InvalidInput, match=message)

    with refused("There are no features at"):
        open_features(tmp_path / "nothing")
    with refused("has no shards"):
        open_features(tmp_path)
    (tmp_path / "x.txt").write_text("1 2 3")
    with refused("is not a file of features"):
        open_features(tmp_path / "x.txt")
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY")
    with refused("not a complete .npy file"):
        open_features(tmp_path / "short.npy")
    (tmp_path / "short.parquet").write_bytes(b"PAR1")
    with refused("not a complete Parquet file"):
        open_features(tmp_path / "short.parquet")
    np.save(tmp_path / "flat.npy", np.ones(3))
    with refused(r"shape \(3,\); expected images × features"):
        open_features(tmp_path / "flat.npy")
    np.save(tmp_path / "complex.npy", np.ones((3, 2), dtype=complex))
    with refused("numbers of type complex128"):
        open_features(tmp_path / "complex.npy")
    np.save(tmp_path / "columns.npy", np.asfortranarray(made()))
    with refused("stored column by column"):
        open_features(tmp_path / "columns.npy")


def test_shards_are_of_one_kind(tmp_path):
    np.save(tmp_path / "a.npy", made())
    np.save(tmp_path / "b.npy", made("float16"))
    with pytest.raises(InvalidInput, match=r"b.npy has 7 features in float16, but .*a.npy"):
        open_features(tmp_path)
    (tmp_path / "b.npy").unlink()
    as_parquet_lists(made(), tmp_path)
    with pytest.raises(InvalidInput, match=r"two formats: \.npy, \.parquet"):
        open_features(tmp_path)


def test_lists_of_different_lengths_are_refused(tmp_path):
    table = pyarrow.table({"features": [[1.0, 2.0], [1.0], [1.0, 2.0, 3.0]]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match="differ in length"):
        open_features(tmp_path / "x.parquet")


@pytest.mark.parametrize("values", [[1, None, 3], [[1, 2], [3, None]]])
def test_whole_numbers_that_are_missing_are_refused(tmp_path, values):
    kind = pyarrow.list_(pyarrow.uint8()) if isinstance(values[0], list) else pyarrow.uint8()
    pq.write_table(pyarrow.table({"x": pyarrow.array(values, kind)}), tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match=r"Numbers of the column 'x' .* are missing"):
        open_features(tmp_path / "x.parquet").read(0, len(values))


def test_lists_of_another_length_in_a_later_row_group_are_refused(tmp_path):
    table = pyarrow.table({"features": [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0]]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    features = open_features(tmp_path / "x.parquet")
    assert features.read(0, 2).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    with pytest.raises(InvalidInput, match=r"x.parquet differ in length: 2 .* 3 from row 2 on"):
        features.read(0, 3)


@pytest.mark.parametrize("width", [1, 3])
def test_an_empty_row_group_has_no_rows(tmp_path, width):
    """Of a column of lists, and of columns of numbers."""
    rows = np.arange(4.0 * width).reshape(4, width)
    columns = {"x": rows.tolist()} if width > 1 else {"x": rows[:, 0]}
    table = pyarrow.table(columns)
    with pq.ParquetWriter(tmp_path / "x.parquet", table.schema) as writer:
        for part in (table[:0], table[:2], table[:0], table[2:]):
            writer.write_table(part)
    features = open_features(tmp_path / "x.parquet")
    assert features.files[0].shape == (4, width)
    np.testing.assert_array_equal(features.read(0, 4), rows)


def test_a_fingerprint_knows_other_features(tmp_path):
    path = as_npy(made(), tmp_path)
    before = open_features(path).fingerprint()
    assert open_features(path).fingerprint() == before
    np.save(path, made() + 1)
    assert open_features(path).fingerprint() != before


@pytest.mark.parametrize("write", WRITERS)
def test_a_fingerprint_knows_every_number_in_its_place(write, tmp_path):
    def fingerprint(X, name):
        (tmp_path / name).mkdir()
        return open_features(write(X, tmp_path / name)).fingerprint()

    X = made()
    other = X.copy()
    other[50, 3] += 1
    inside = np.r_[0, np.random.default_rng(1).permutation(np.arange(1, 102)), 102]
    swapped = np.r_[0:40, 41, 40, 42:103]
    variants = (X[inside], X[swapped], X[:, ::-1].copy(), other)
    prints = [fingerprint(x, f"{i}") for i, x in enumerate((X, *variants))]
    assert len(set(prints)) == 5
    assert fingerprint(X, "again") == prints[0]


def test_a_fingerprint_of_much_reads_a_part_and_the_time_of_change(tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "HASHED_BYTES", 50 * 28)
    monkeypatch.setattr(files_module, "N_RUNS", 10)
    monkeypatch.setattr(files_module, "READ_BYTES", 2 * 28)
    X, read = made(), []
    path = as_npy(X, tmp_path)
    files = open_features(path)
    real = files.read
    monkeypatch.setattr(files, "read", lambda *run: read.append(run) or real(*run))
    before = files.fingerprint()
    rows = [row for run in read for row in range(*run)]
    assert len(rows) == len(set(rows)) == 50
    assert (min(rows), max(rows)) == (0, 102)
    assert files.fingerprint() == before
    np.save(path, X[::-1])
    assert open_features(path).fingerprint() != before
    np.save(path, X)
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    assert open_features(path).fingerprint() != before


def test_bytes_after_the_numbers_of_an_npy_file_are_not_read(tmp_path):
    X = made()
    path = as_npy(X, tmp_path)
    with path.open("ab") as file:
        file.write(b"more" * 100)
    files = open_features(path)
    np.testing.assert_array_equal(files.read(0, 103), X)
    np.testing.assert_array_equal(files.take(np.array([0, 50, 102])), X[[0, 50, 102]])
