"""Suggestions on photographs: correct ones are marked, and examples show gains and losses."""

import re

import numpy as np
import pytest
from PIL import Image

from experiments.config import Config
from experiments.photos import METHODS, examples, page, suggested, tables
from experiments.study import Study
from experiments.tabular import Table

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
    assert "<b>dog</b>" in shown.html()
    assert counted.rows[0] == ["NNvot", "1.00", "2.00", 2, 0]
    assert counted.rows[-1][:3] == ["neighbours that share a label", "0.50", "1.00"]


def test_the_page_shows_photographs_and_the_tables_do_not(study, tmp_path):
    page(study, tmp_path / "photos.html")
    text = (tmp_path / "photos.html").read_text()
    assert text.count("<img") == 2 * (1 + 2 * 2)
    assert text.count('class="off"') == 2
    assert "base64" not in "".join(table.markdown() for table in tables(study))


def test_tables_escape_what_is_in_them():
    odd = '<i>&"'
    text = Table("t", odd, [odd], [[f"**{odd}**, {odd}"], [1200], [0.25], [None]], odd).html()
    assert text.count("&lt;i&gt;&amp;&#34;") == 5
    assert "<i>" not in text
    assert "<b>&lt;i&gt;" in text
    assert re.findall(r'<td class="n">([^<]*)</td>', text) == ["1,200", "0.2", ""]


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
