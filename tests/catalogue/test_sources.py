"""A third source is a module and its name: that of CONTRIBUTING.md, from the scan to the undo."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tagkin.catalogue import ACCEPTED, Filters, open_for_scan, sources
from tagkin.catalogue.known_catalogues import server_folder
from tagkin.cli.options import find_on_server
from tagkin.images import encode_jpeg
from tagkin.tag_servers import SERVERS
from tests.documents import ROOT, blocks


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of an album of three photographs, one of them with a tag."""
    (code,) = blocks(ROOT / "CONTRIBUTING.md", "python")
    (tmp_path / "album.py").write_text(code)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "tagkin.catalogue.sources.album", raising=False)
    monkeypatch.setitem(SERVERS, "album", "Album")
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    root = server_folder("album")
    (root / "originals").mkdir(parents=True)
    for i in range(3):
        pixels = np.random.default_rng(i).integers(0, 255, (60, 80, 3), dtype=np.uint8)
        (root / "originals" / f"{i}.jpg").write_bytes(encode_jpeg(pixels))
    (root / "album.json").write_text(json.dumps({"0.jpg": ["sea"], "1.jpg": [], "2.jpg": []}))
    return root.resolve()


def test_the_source_of_the_contributors_guide(album):
    with open_for_scan(album) as catalogue:
        assert catalogue.source.title == f"Album at {album / 'album.json'}"
        assert sorted(catalogue.scan().added) == ["0.jpg", "1.jpg", "2.jpg"]
        assert [tag.name for tag in catalogue.tags.list_all()] == ["sea"]
        catalogue.decisions.decide(ACCEPTED, Filters(photographs=["1.jpg"], tags=["dusk", "sea"]))
        run = catalogue.write()
        assert (run.n_tags, run.failures) == (2, [])
        tags = json.loads((album / "album.json").read_text())
        assert {path: sorted(each) for path, each in tags.items()} == {
            "0.jpg": ["sea"],
            "1.jpg": ["dusk", "sea"],
            "2.jpg": [],
        }
        texts = [said.text for tag in catalogue.explain("1.jpg").tags for said in tag.said]
        assert texts.count("is in Album") == 2
        assert [file.how for file in catalogue.undo().files] == ["tags removed"]
        assert json.loads((album / "album.json").read_text())["1.jpg"] == []
        assert catalogue.scan().retagged == []


def test_commands_know_it_by_its_name(album):
    assert find_on_server(Path("album/2024")) == server_folder("album") / "2024"
