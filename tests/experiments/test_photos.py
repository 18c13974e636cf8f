"""Suggestions on photographs: correct ones are marked, and examples show gains and losses."""

import numpy as np
import pytest
from PIL import Image

from experiments.config import Config
from experiments.photos import METHODS, examples, suggested, tables
from experiments.study import Study

NAMES = np.array(["cat", "dog", "tree", "boat", "car", "bus"])


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Two test photographs with known suggestions: the space adds one correct label to each."""
    folder = tmp_path / "data" / "photos"
    folder.mkdir(parents=True)
    for name in ("a.jpg", "b.jpg", "x.jpg", "y.jpg"):
        Image.new("RGB", (8, 8), "red").save(folder / name)
    monkeypatch.setenv("TAGKIN_DATA", str(tmp_path / "data"))
    study = Study(Config("photos", "photos", (), qualitative=True), tmp_path / "results")
    truth = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]], dtype=bool)
    common = {
        "truth": truth,
        "known": truth,
        "names": NAMES,
        "files": np.array(["a.jpg", "b.jpg"]),
        "known_files": np.array(["x.jpg", "y.jpg"]),
    }
    ranks = {m: np.array([[0, 2, 3], [4, 0, 1]]) for m in METHODS}
    two = {m: np.array([[0, 1, 3], [4, 5, 1]]) for m in METHODS}
    neighbors = np.array([[1, 0], [0, 1]]), np.array([[0, 0], [1, 1]])
    size = {"K": study.config.max_learned_neighbors}
    first, second = ({**common, "neighbors": rows} for rows in neighbors)
    study.store.put("suggestions", first | ranks, recipe="visual", **size)
    study.store.put("suggestions", second | two, recipe="linear", **size)
    return study


def test_correct_labels_are_marked_and_counted(study):
    shown, counted = tables(study)
    row = next(row for row in shown.rows if row[0] == "a.jpg")
    assert row[1:4] == ["cat, dog", "**cat**, tree, boat", "**cat**, **dog**, boat"]
    assert counted.rows[0] == ["NNvot", "1.00", "2.00", 2, 0]
    assert counted.rows[-1][:3] == ["neighbours that share a label", "0.50", "1.00"]


def test_nothing_without_results(tmp_path):
    study = Study(Config("photos", "photos", (), qualitative=True), tmp_path)
    study.store.read_only = True
    assert list(tables(study)) == []
    with pytest.raises(LookupError):
        suggested(study, "visual")


def test_examples_hold_gains_losses_and_others():
    gain = np.array([0, 5, -3, 1, 0, 0, 2, -1, 0, 0, 0])
    chosen = examples(gain, seed=0)
    assert chosen[:3] == [1, 6, 3]
    assert set(chosen[3:5]) == {2, 7}
    assert len(set(chosen)) == 9
