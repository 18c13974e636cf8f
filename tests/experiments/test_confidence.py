"""Frames, leaks and calibration, on small synthetic collections; and the page of the results."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from experiments import confidence
from experiments.config import find_config
from experiments.frames import cut_frames
from experiments.leakage import choice_rows, precision_rows
from experiments.problem import expert_problem, open_data
from experiments.reliability import reached, reliability_rows
from tagkin import SemanticSpace

SPACE = SemanticSpace()


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    config = find_config("smoke")
    return expert_problem(open_data(config, tmp_path_factory.mktemp("cache")), config)


def test_frames_of_a_photograph_differ(tmp_path):
    rng = np.random.default_rng(0)
    photographs = [tmp_path / "one.png", tmp_path / "two.png"]
    for photograph in photographs:
        Image.fromarray(rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(photograph)
    files = cut_frames(photographs, tmp_path, seed=1)
    assert len(files) == 6
    pixels = [np.asarray(Image.open(file)) for file in files]
    assert {part.shape for part in pixels} == {(40, 60, 3)}
    assert not any((a == b).all() for a, b in pairwise(pixels))


def test_every_part_measures(problem):
    ways = precision_rows(problem, n_landmarks=40)
    assert len({row["space"] for row in ways}) == len(ways) == 2
    for row in choice_rows(problem, n_landmarks=40):
        assert row["fitted in each fold"] < row["fitted once on all"]
    (row,) = reliability_rows(problem, "smoke", n_draws=2, n_known=150, space=SPACE)
    assert row["ECE"] < 0.1


def test_intervals_come_from_how_draws_differ():
    rng = np.random.default_rng(0)
    given = np.full(400, 50)
    held = rng.binomial(given, 0.8)
    p, _, half, n = reached(given, held).split()
    # independent suggestions: 1.96 √(p (1 − p) / n), to a tenth with 400 draws
    assert float(half) == pytest.approx(1.96 * np.sqrt(0.16 / 20_000), rel=0.12)
    assert (float(p), n) == (pytest.approx(0.8, abs=0.01), "(20,000)")
    same = np.repeat(held[:50], 8)  # eight draws of the same are one
    wider = float(reached(np.full(50, 400), 8 * held[:50]).split()[2])
    assert wider == pytest.approx(np.sqrt(8) * float(reached(given, same).split()[2]), rel=0.05)
    assert reached(np.zeros(3), np.zeros(3)) == "none"
    assert reached(np.array([5, 5]), np.array([5, 5])) == "1.000 ± 0.000 (10), few"


def test_a_part_is_stored_and_drawn(tmp_path, monkeypatch):
    row = {"dataset": "x", "ECE": 0.01234, "n": 1234, "none": None}
    row["curve"] = "0.1 0.12 400;0.5 0.45 90;0.9 1 3"
    monkeypatch.setitem(confidence.PARTS, "reliability", lambda cache: [row])
    confidence.measure(["reliability"], tmp_path, tmp_path)
    stored = (tmp_path / "confidence-reliability.csv").read_text(encoding="utf-8")
    assert stored.splitlines()[1].startswith("x,0.012,1234,,")
    drawn = (tmp_path / "confidence-reliability.svg").read_text(encoding="utf-8")
    assert drawn.count("<use ") > 2
    with pytest.raises(SystemExit, match="There are frames"):
        confidence.measure(["more"], tmp_path, tmp_path)
