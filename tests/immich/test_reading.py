"""Photographs and tags as a scan reads them from the server."""

import json
import os
import stat
from pathlib import Path

import pytest
from PIL import Image

from tagkin.catalogue import open_for_scan
from tagkin.catalogue.known_catalogues import server_folder
from tagkin.catalogue.target_paths import is_inside
from tagkin.collection.facts import stored_facts
from tagkin.immich.library import read_assets

from .conftest import path_of, picture


def tags_of(catalogue, photo) -> set[str]:
    content = catalogue.photographs.content_of(path_of(catalogue, photo))
    (tagged,) = (c for c in catalogue.photographs.with_tags() if c.content == content)
    return set(tagged.tags)


def test_a_scan_reads_photographs_and_the_deepest_tags(catalogue, photos):
    assert catalogue.photographs.count().n_photographs == 6
    assert [tags_of(catalogue, photo) for photo in photos] == [
        {"animals|dog"},
        {"animals|dog", "beach"},
        {"animals"},
        *[set()] * 3,
    ]
    explanation = catalogue.explain(path_of(catalogue, photos[0]))
    assert [source.text for tag in explanation.tags for source in tag.said] == ["is in Immich"]


def test_paths_have_the_month_and_the_name(catalogue, photos):
    path = path_of(catalogue, photos[0])
    assert path == f"2024/05/IMG_0-{photos[0].checksum.hex()[:12]}.jpg"


def test_copies_are_small_and_private_and_say_when_they_were_taken(immich, open_collection):
    immich.upload("large.jpg", picture(1, (3000, 2000)))
    with open_collection() as catalogue:
        catalogue.scan()
        file = catalogue.absolute(catalogue.photographs.search()[0][1])
    with Image.open(file) as image:
        assert max(image.size) == 1024
        assert image.getexif().get_ifd(0x8769)[0x9003] == "2024:05:01 12:00:00"
        assert image.getexif()[0x110] == "Kamera X1"
    for path in (file, server_folder("immich") / "library.json"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(server_folder("immich")).st_mode) == 0o700


def facts_of(catalogue, photo) -> dict[str, object]:
    names = [fact.name for fact in stored_facts()]
    row = catalogue.database.row(
        f"SELECT {', '.join(names)} FROM photographs WHERE path = ?", (path_of(catalogue, photo),)
    )
    return {name: value for name, value in zip(names, row, strict=True) if value is not None}


def test_facts_arrive_and_follow_what_changes_on_the_server(catalogue, immich, photos):
    known = {"taken": "2024-05-01T12:00:00", "camera": "Kamera X1"}
    assert facts_of(catalogue, photos[0]) == known
    exif = {"lensModel": "RF 35mm", "rating": 4, "latitude": 47.377, "longitude": 8.54}
    photos[0].exif = exif | {"dateTimeOriginal": None}
    immich.requests.clear()
    result = catalogue.scan()
    assert (result.n_unchanged, result.retagged, result.edited) == (5, [], [])
    assert not any("thumbnail" in path for _, path in immich.requests)
    place = {"latitude": 47.377, "longitude": 8.54}
    assert facts_of(catalogue, photos[0]) == {
        "camera": "Kamera X1", "lens": "RF 35mm", "rating": 4, **place
    }  # fmt: skip
    assert facts_of(catalogue, photos[1]) == known | {"taken": "2024-05-01T13:00:00"}
    photos[0].exif = {}
    catalogue.scan()
    assert facts_of(catalogue, photos[0]) == known
    assert catalogue.scan().n_unchanged == 6


def test_a_listing_of_former_times_keeps_the_paths(catalogue, immich, photos):
    stored = server_folder("immich") / "library.json"
    assets = json.loads(stored.read_bytes())
    former = [a | {"path": f"elsewhere/{i}.jpg", "taken": None, "camera": ""}
              for i, a in enumerate(assets)]  # fmt: skip
    for asset in former:
        del asset["facts"]
    stored.write_text(json.dumps(former))
    assert set(read_assets(server_folder("immich"))) == {f"elsewhere/{i}.jpg" for i in range(6)}


def test_a_second_scan_reads_only_what_is_new(catalogue, immich, photos):
    immich.requests.clear()
    result = catalogue.scan()
    assert (result.n_unchanged, result.added, result.retagged, result.gone) == (6, [], [], [])
    assert not any("thumbnail" in path for _, path in immich.requests)
    new = immich.upload("new.jpg", picture(9), ("beach",))
    immich.tag(photos[5], "dusk")
    immich.trash(photos[4])
    immich.requests.clear()
    trashed, retagged = path_of(catalogue, photos[4]), path_of(catalogue, photos[5])
    result = catalogue.scan()
    assert result.added == [path_of(catalogue, new)]
    assert (result.retagged, result.gone) == ([retagged], [trashed])
    assert [path for _, path in immich.requests if "thumbnail" in path] == [
        f"/assets/{new.id}/thumbnail"
    ]
    assert not os.path.exists(catalogue.absolute(trashed))  # nor is a copy kept here


def test_deleted_photographs_are_noticed(catalogue, immich, photos):
    gone = path_of(catalogue, photos[3])
    copy = Path(catalogue.absolute(gone))
    assert copy.exists()
    immich.delete(photos[3])
    assert catalogue.scan().gone == [gone]
    assert not copy.exists()


def test_pages_are_followed_to_the_end(immich, photos, open_collection):
    immich.page_size = 2
    with open_collection() as catalogue:
        assert len(catalogue.scan().added) == 6
        assert tags_of(catalogue, photos[2]) == {"animals"}


def test_a_photograph_is_known_by_its_checksum(catalogue, immich, photos):
    """A preview made anew is not another photograph; the same file uploaded again is the same."""
    path = path_of(catalogue, photos[0])
    content = catalogue.photographs.content_of(path)
    photos[0].preview, photos[0].name = picture(50), "renamed.jpg"
    immich.touch(photos[0])
    result = catalogue.scan()
    assert (result.edited, result.moved, result.n_unchanged) == ([], [], 6)
    assert catalogue.photographs.content_of(path) == content
    other = immich.photos.pop(photos[1].id)
    again = immich.upload(other.name, other.preview, taken=other.taken)
    result = catalogue.scan()
    assert (result.added, result.gone) == ([], [])
    assert catalogue.photographs.content_of(path_of(catalogue, again))


def test_another_file_in_its_place_is_an_edited_photograph(catalogue, immich, photos):
    path = path_of(catalogue, photos[0])
    photos[0].preview, photos[0].checksum = picture(51), bytes(20)
    immich.touch(photos[0])
    assert catalogue.scan().edited == [path]


def test_what_is_not_ready_or_not_ours_is_left_out(immich, photos, open_collection):
    photos[0].is_ready = False
    photos[1].owner = "somebody-else"
    with open_collection() as catalogue:
        result = catalogue.scan()
        assert len(result.added) == 4
        (failure,) = result.failures
        assert "still reading 1 new photograph" in failure.reason
        photos[0].is_ready = True
        immich.touch(photos[0])
        assert len(catalogue.scan().added) == 1


def test_a_lost_copy_is_made_again(catalogue, photos, immich):
    file = catalogue.absolute(path_of(catalogue, photos[2]))
    os.unlink(file)
    immich.requests.clear()
    catalogue.scan()
    assert os.path.exists(file)
    assert sum("thumbnail" in path for _, path in immich.requests) == 1


def test_a_picture_that_cannot_be_read_is_one_failure(immich, photos, open_collection):
    photos[0].preview = b"no picture"
    with open_collection() as catalogue:
        result = catalogue.scan()
        assert len(result.failures) == 1
        assert len(result.added) == 6
        photos[0].preview = picture(0)
        assert catalogue.scan().failures == []


def test_a_dry_run_keeps_nothing(immich, photos, open_collection):
    with open_collection():
        pass
    folder = server_folder("immich")
    with open_for_scan(folder, dry_run=True) as catalogue:
        assert len(catalogue.scan().added) == 6
    assert [file.name for file in folder.iterdir()] == ["connection.json"]


def test_tags_with_slashes_go_there_and_back(catalogue, immich, photos):
    immich.tag(photos[3], "music/AC|DC")
    catalogue.scan()
    assert tags_of(catalogue, photos[3]) == {"music|AC/DC"}


@pytest.mark.parametrize(
    "name", ["../../../evil.jpg", "/etc/passwd", "a\\b.jpg", "...", "", "CON:\0.jpg", "é" * 300]
)
def test_names_cannot_lead_elsewhere(immich, open_collection, name):
    immich.upload(name, picture(1))
    with open_collection() as catalogue:
        (path,) = catalogue.scan().added
        assert is_inside(path)
        assert os.path.isfile(catalogue.absolute(path))
        assert len(path.split("/")) == 3
