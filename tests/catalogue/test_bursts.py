"""Bursts in the catalogue: which photographs are one burst, and what changes it."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue import open_for_scan
from tagkin.catalogue.bursts import store_bursts
from tagkin.progress import silent
from tests.catalogue.test_selection import CANON, PHONE, put

# name: shade of its picture, camera, time of day
SHOTS = {
    "a.jpg": (100, CANON, "10:00:00"),
    "b.jpg": (101, CANON, "10:00:03"),
    "c.jpg": (102, CANON, "10:00:08"),  # five seconds after the last
    "other.jpg": (220, CANON, "10:00:09"),  # it looks different
    "later.jpg": (103, CANON, "10:00:20"),
    "phone.jpg": (104, PHONE, "10:00:01"),  # another camera
    "d.jpg": (30, CANON, "12:00:00"),
    "e.jpg": (31, CANON, "12:00:00"),
}


class Annotator:
    """Sees the shade of a picture, and fifty unlike ones besides."""

    def read_features(self, files):
        angles = [np.asarray(Image.open(file)).mean() / 256 * np.pi for file in files]
        features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return SimpleNamespace(files=list(files), features=features)


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    root = tmp_path / "photos"
    for name, (shade, camera, moment) in SHOTS.items():
        put(root / name, camera, f"2024:05:01 {moment}", None, shade)
    for shade in range(0, 250, 5):
        put(root / "others" / f"{shade}.jpg", None, None, None, shade)
    with open_for_scan(root) as opened:
        opened.scan()
        yield opened


def bursts(catalogue):
    """Names of each burst."""
    by_file = {}
    for number, path in catalogue.database.rows(
        "SELECT c.burst, p.path FROM contents c JOIN photographs p ON p.content = c.id "
        "WHERE c.burst IS NOT NULL ORDER BY p.path"
    ):
        by_file.setdefault(number, []).append(path)
    return sorted(by_file.values())


def test_one_camera_within_seconds_and_alike(catalogue):
    assert store_bursts(catalogue.database, Annotator(), silent) == 2
    assert bursts(catalogue) == [["a.jpg", "b.jpg", "c.jpg"], ["d.jpg", "e.jpg"]]
    contents = dict(catalogue.database.rows("SELECT path, content FROM photographs"))
    burst = [contents[name] for name in ("a.jpg", "b.jpg", "c.jpg")]
    assert catalogue.bursts.of([*burst, contents["other.jpg"]]) == dict.fromkeys(burst, min(burst))
    assert catalogue.bursts.members([min(burst)]) == {min(burst): burst}


def test_a_photograph_that_is_gone_leaves_its_burst(catalogue):
    store_bursts(catalogue.database, Annotator(), silent)
    (catalogue.root / "d.jpg").unlink()
    catalogue.scan()
    store_bursts(catalogue.database, Annotator(), silent)
    assert bursts(catalogue) == [["a.jpg", "b.jpg", "c.jpg"]]


@pytest.mark.parametrize("taken", ["2024:05:01", "2024:05:01 00:00:00", "2000:01:01 00:00:00"])
def test_photographs_without_a_time_of_capture_are_no_burst(catalogue, taken):
    for name in ("d.jpg", "e.jpg"):
        shade, camera, _ = SHOTS[name]
        put(catalogue.root / name, camera, taken, None, shade)
    catalogue.scan()
    store_bursts(catalogue.database, Annotator(), silent)
    assert bursts(catalogue) == [["a.jpg", "b.jpg", "c.jpg"]]
