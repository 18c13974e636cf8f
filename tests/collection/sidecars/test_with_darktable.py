"""Tags go to darktable and come back, by its command line."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Filters, open_for_scan
from tagkin.collection import read_keywords
from tests.catalogue.photographs import found_tags
from tests.images.synthetic import picture, saved

pytestmark = pytest.mark.skipif(
    shutil.which("darktable-cli") is None,
    reason="darktable is not installed; CONTRIBUTING.md says how to install it",
)


def export(photo: Path, to: Path, home: Path) -> set[str]:
    """Let darktable import a photograph with its sidecar and export it; return its tags there."""
    home.mkdir()
    files = [photo, photo.with_name(f"{photo.name}.xmp"), to]
    options = ["--core", "--configdir", home, "--cachedir", home, "--library", home / "library.db"]
    subprocess.run(
        ["darktable-cli", *map(str, files + options)],
        env=os.environ | {"HOME": str(home)},
        capture_output=True,
        check=True,
        timeout=600,
    )
    with contextlib.closing(sqlite3.connect(home / "data.db")) as tags:
        return {name for (name,) in tags.execute("SELECT name FROM tags")}


def test_tags_go_to_darktable_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    photo = tmp_path / "photos" / "a.jpg"
    photo.parent.mkdir()
    photo.write_bytes(saved(picture(), "JPEG"))
    exported = photo.with_name("exported.jpg")
    with open_for_scan(photo.parent) as catalogue:
        catalogue.scan()

        def decide(verdict, *tags):
            filters = Filters(photographs=["a.jpg"], tags=list(tags))
            catalogue.decisions.decide(verdict, filters)

        decide(ACCEPTED, "animal|dog", "海", "Köln & <Umland>")
        catalogue.write()
        there = export(photo, exported, tmp_path / "first")
        assert {"animal|dog", "海", "Köln & <Umland>"} <= there
        # darktable writes every level into dc:subject
        names = {"animal|dog", "海", "Köln & <Umland>"}
        assert set(read_keywords(exported)) == names
        catalogue.scan()
        assert set(found_tags(catalogue)["a.jpg"]) == names
        assert set(found_tags(catalogue)["exported.jpg"]) == names
        decide(REJECTED, "animal|dog")
        decide(ACCEPTED, "beach")
        catalogue.write(remove=True)
        exported.unlink()
        there = export(photo, exported, tmp_path / "second")
        assert {"beach", "海"} <= there
        assert not any("dog" in tag for tag in there)
        assert set(read_keywords(exported)) == {"海", "Köln & <Umland>", "beach"}
