"""Files of vectors: every format there and back, and what is refused."""

import numpy as np
import pytest

from experiments.datasets import read_vectors
from tagkin.errors import InvalidInput, StorageError
from tests.experiments.datasets.writers import hvecs

FORMATS = {
    "a.hvecs": ("<u2", "<u2"),
    "a.hvec": ("<u2", "<u2"),
    "a.hvecs32": ("<u4", "<u4"),
    "a.fvecs": ("<i4", "<f4"),
    "corel5k_train_Gist.fvec": ("<i4", "<f4"),
    "a.dvecs": ("<i4", "<f8"),
    "a.ivecs": ("<i4", "<i4"),
    "a.bvecs": ("<i4", "u1"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_vectors_come_back(tmp_path, name):
    length, numbers = FORMATS[name]
    rows = np.arange(12).reshape(4, 3).astype(numbers)
    data = b"".join(np.array(3, length).tobytes() + row.tobytes() for row in rows)
    (tmp_path / name).write_bytes(data)
    vectors = read_vectors(tmp_path / name)
    assert vectors.dtype == np.dtype(numbers)
    assert vectors.tolist() == rows.tolist()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "no vector"),
        (b"\1", "no vector"),
        (hvecs([[1, 0], [0, 1]])[:-1], "cut off"),
        (hvecs([[1, 0], [0, 1]])[:-2], "cut off"),
        (b"\0\0", "cut off"),
        (hvecs([[1, 0, 1], [1], [0]]), "vector 1 has 1 numbers where the first has 3"),
    ],
)
def test_damage(tmp_path, data, what):
    (tmp_path / "a.hvecs").write_bytes(data)
    with pytest.raises(StorageError, match=what):
        read_vectors(tmp_path / "a.hvecs")


def test_no_file_and_no_format(tmp_path):
    with pytest.raises(StorageError, match="No such file"):
        read_vectors(tmp_path / "a.fvecs")
    with pytest.raises(InvalidInput, match=r"Known: \.hvecs, \.hvecs32"):
        read_vectors(tmp_path / "a.txt")
