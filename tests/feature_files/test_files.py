"""Features on disk: every format gives the rows that were written, bad files say so."""

import os

import numpy as np
import pytest

from tagkin import memory_budget
from tagkin.errors import InvalidInput
from tagkin.feature_files import open_features

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


WRITERS = (as_npy, as_shards)


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
    with refused("is not an .npy file"):
        open_features(tmp_path / "x.txt")
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY")
    with refused("not a complete .npy file"):
        open_features(tmp_path / "short.npy")
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


def test_a_fingerprint_knows_other_features(tmp_path):
    path = as_npy(made(), tmp_path)
    before = open_features(path).fingerprint()
    assert open_features(path).fingerprint() == before
    np.save(path, made() + 1)
    assert open_features(path).fingerprint() != before


def test_a_fingerprint_knows_the_time_of_change(tmp_path):
    path = as_npy(made(n=5000), tmp_path)
    before, status = open_features(path).fingerprint(), path.stat()
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
