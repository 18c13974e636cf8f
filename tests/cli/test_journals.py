"""A journal beside a catalogue, tagkin's or another program's, that names a victim."""

import os
import shutil
import time

import pytest

from tests.collection.program_catalogues import make_digikam, make_lightroom
from tests.journals import plant_journal

from .conftest import call
from .synthetic import make_photographs

PLANTED = "-journal names another file"


@pytest.fixture
def tags(tmp_path):
    return make_photographs(tmp_path / "photos", n_each=1)


@pytest.mark.parametrize("program", ["digiKam", "Lightroom"])
def test_beside_a_catalogue_that_a_scan_reads(run, tmp_path, tags, program):
    photos = tmp_path / "photos"
    if program == "digiKam":
        file = make_digikam(photos / "digikam4.db", tags, f"volumeid:?path={photos}")
    else:
        file = make_lightroom(photos / "c.lrcat", tags, f"{photos}/")
    victim = plant_journal(file, tmp_path)
    result = run("scan", "photos", "--tags", f"photos/{file.name}")
    assert result.exit_code == 1
    assert PLANTED in result.stderr
    assert victim.read_text() == "precious"


def test_beside_one_that_was_read_before(run, tmp_path, tags):
    """A plain scan reads it again if it or a photograph has changed."""
    photos = tmp_path / "photos"
    file = make_digikam(photos / "digikam4.db", tags, f"volumeid:?path={photos}")
    assert run("scan", "photos", "--tags", f"photos/{file.name}").exit_code == 0
    victim = plant_journal(file, tmp_path)
    for _ in range(3):
        result = run("scan", "photos")
        assert result.exit_code == 0 or PLANTED in result.stderr
        assert victim.exists()
        later = time.time() + 100
        os.utime(file, (later, later))
    assert PLANTED in result.stderr


def test_beside_a_catalogue_of_tagkin(run, catalogue, tmp_path):
    victim = plant_journal(catalogue, tmp_path)
    for command in ("status", "scan", "history", "tags list", "suggest", "undo"):
        result = run(*command.split(), "--catalogue", catalogue)
        assert result.exit_code == 1
        assert PLANTED in result.stderr
        assert "internal error" not in result.stderr
        assert victim.read_text() == "precious"


def test_beside_the_feature_cache(world, catalogue, tmp_path):
    """A command does without it."""
    cache = tmp_path / "cache"
    shutil.copytree(world.cache, cache)
    victim = plant_journal(cache / "features.sqlite", tmp_path)
    result = call(cache, "train", "--catalogue", catalogue)
    assert result.exit_code == 0, result.stderr
    assert PLANTED in result.stderr
    assert victim.exists()
