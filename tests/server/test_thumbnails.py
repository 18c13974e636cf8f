"""Thumbnails: made once, kept by content, limited, and never in the way."""

import io
import os
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue import Catalogue
from tagkin.images import content_digest
from tagkin.server.readers import Readers
from tagkin.server.thumbnail_cache import CLOSER, SIZES, ThumbnailPrefetcher, Thumbnails
from tests.journals import plant_journal

from .conftest import put_photograph

SMALL = SIZES[0]


@pytest.fixture
def photograph(tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "one.jpg"
    put_photograph(path, 100, [])
    return str(path), content_digest(path.read_bytes())


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "thumbnails-cache"


def stored(cache: Path) -> int:
    with sqlite3.connect(cache / "thumbnails.sqlite") as database:
        return int(database.execute("SELECT count(*) FROM thumbnails").fetchone()[0])


def test_made_once(cache: Path, photograph: tuple[str, str]) -> None:
    file, digest = photograph
    thumbnails = Thumbnails(cache)
    first = thumbnails.picture(file, digest, SMALL)
    thumbnails.close()
    Path(file).unlink()
    again = Thumbnails(cache)
    assert again.picture(file, digest, SMALL) == first
    assert first.is_final
    assert not again.picture(file, digest, SIZES[1]).is_final  # that one was never made
    again.close()


@pytest.mark.parametrize("value", [2_000_000_000, -5, "text", 1.5])
def test_a_value_that_is_no_picture_is_made_again(
    cache: Path, photograph: tuple[str, str], value: object
) -> None:
    thumbnails = Thumbnails(cache)
    first = thumbnails.picture(*photograph, SMALL)
    thumbnails.close()
    with sqlite3.connect(cache / "thumbnails.sqlite") as database:
        database.execute("UPDATE thumbnails SET jpeg = ?", (value,))
    again = Thumbnails(cache)
    assert again.picture(*photograph, SMALL) == first
    Path(photograph[0]).unlink()
    assert again.picture(*photograph, SMALL) == first
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_others_cannot_read_the_pictures(cache: Path, photograph: tuple[str, str]) -> None:
    thumbnails = Thumbnails(cache)
    thumbnails.picture(*photograph, SMALL)
    modes = {path.name: path.stat().st_mode & 0o077 for path in cache.iterdir()}
    assert "thumbnails.sqlite" in modes
    assert set(modes.values()) == {0}
    thumbnails.close()


def test_one_that_changed_since_the_scan_is_shown_and_not_kept(
    cache: Path, photograph: tuple[str, str]
) -> None:
    thumbnails = Thumbnails(cache)
    thumbnail = thumbnails.picture(photograph[0], "0" * 64, SMALL)
    assert thumbnail.data.startswith(b"\xff\xd8")
    assert not thumbnail.is_final
    thumbnails.close()
    assert stored(cache) == 0


def test_all_of_a_catalogue_are_made_ahead(catalogue: Catalogue, cache: Path) -> None:
    readers, thumbnails = Readers(catalogue.path), Thumbnails(cache)
    ahead = ThumbnailPrefetcher(readers, thumbnails)
    assert ahead.wait(300)
    digests = [digest.hex() for (digest,) in catalogue.database.rows("SELECT digest FROM contents")]
    made = [digest for digest in digests if thumbnails.has(digest, SMALL)]
    assert len(made) == len(digests) - 1  # one of them is no picture
    assert not any(thumbnails.has(digest, SIZES[1]) for digest in digests)
    thumbnails.close()
    assert stored(cache) == len(made)
    full = Thumbnails(cache, max_bytes=1)  # nothing is made where there is no room
    assert full.is_nearly_full
    full.close()
    readers.close()


def test_the_oldest_make_room(cache: Path, tmp_path: Path) -> None:
    thumbnails = Thumbnails(cache, max_bytes=200_000)
    for number in range(1100):
        # content is what counts: the same picture with other bytes behind it
        path = tmp_path / f"{number}.jpg"
        if not number:
            put_photograph(path, 100, [])
            data = path.read_bytes()
        path.write_bytes(data + b"%d" % number)
        thumbnails.picture(str(path), content_digest(path.read_bytes()), SMALL)
    thumbnails.close()
    assert 0 < stored(cache) < 1000
    with sqlite3.connect(cache / "thumbnails.sqlite") as database:
        first, last = database.execute("SELECT min(id), max(id) FROM thumbnails").fetchone()
    assert first > 1
    assert last == 1100


def test_a_damaged_cache_is_made_again(cache: Path, photograph: tuple[str, str]) -> None:
    cache.mkdir()
    (cache / "thumbnails.sqlite").write_bytes(b"no database" * 1000)
    thumbnails = Thumbnails(cache)
    assert thumbnails.picture(*photograph, SMALL).is_final
    thumbnails.close()
    assert stored(cache) == 1


def test_a_planted_journal_deletes_nothing(
    cache: Path, photograph: tuple[str, str], tmp_path: Path
) -> None:
    thumbnails = Thumbnails(cache)
    thumbnails.picture(*photograph, SMALL)
    thumbnails.close()
    victim = plant_journal(cache / "thumbnails.sqlite", tmp_path)
    thumbnails = Thumbnails(cache)
    assert thumbnails.picture(*photograph, SMALL).is_final  # made again
    thumbnails.close()
    assert victim.exists()


def test_a_cache_that_cannot_be_made_is_done_without(
    tmp_path: Path, photograph: tuple[str, str]
) -> None:
    (tmp_path / "file").write_text("")
    thumbnails = Thumbnails(tmp_path / "file")  # nobody makes a folder of a file
    assert thumbnails.picture(*photograph, SMALL).is_final
    thumbnails.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_they_are_for_their_user_alone(tmp_path: Path, photograph: tuple[str, str]) -> None:
    before = os.umask(0o000)
    try:
        thumbnails = Thumbnails(tmp_path / "cache")
        thumbnails.picture(*photograph, SMALL)
        files = {path.stat().st_mode & 0o777 for path in (tmp_path / "cache").iterdir()}
        thumbnails.close()
    finally:
        os.umask(before)
    assert files == {0o600}
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_larger_copies_never_displace_thumbnails(cache: Path, tmp_path: Path) -> None:
    """Copies for a closer look go first, and are made again on demand."""
    noise = np.random.default_rng(0).integers(0, 255, (600, 800, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.jpg", quality=95)
    data = (tmp_path / "noise.jpg").read_bytes()
    files = []
    for number in range(8):
        path = tmp_path / f"{number}.jpg"
        path.write_bytes(data + b"%d" % number)
        files.append((str(path), content_digest(path.read_bytes())))
    thumbnails = Thumbnails(
        cache, max_bytes=1_200_000
    )  # room for the thumbnails and two larger copies
    for size in (SMALL, CLOSER):
        for file in files:
            thumbnails.picture(*file, size)
    assert all(thumbnails.has(digest, SMALL) for _, digest in files)
    assert not all(thumbnails.has(digest, CLOSER) for _, digest in files)
    picture = thumbnails.picture(*files[0], CLOSER)
    assert picture.is_final
    assert Image.open(io.BytesIO(picture.data)).size == (800, 600)  # never larger than it is
    thumbnails.close()
