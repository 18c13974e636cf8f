"""Facts in the catalogue: stored, compared at a rescan, and all of them from one table."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.catalogue.database import Database
from tagkin.catalogue.migrations import MIGRATIONS, read_facts_again
from tagkin.cli import app
from tagkin.collection.facts import stored_facts
from tagkin.server import Review
from tests.collection.test_facts import PLACE, ZURICH, packet, photograph
from tests.server.browser import Browser, Running


def old(path: Path) -> Path:
    """A file that did not change in the last seconds."""
    os.utime(path, (time.time() - 100,) * 2)
    return path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    root = tmp_path / "photos"
    (root / "2024").mkdir(parents=True)
    old(photograph(root / "2024" / "a.jpg", below={0x9291: "25", 0xA434: "50mm"}, gps=ZURICH))
    Image.new("RGB", (8, 8), "navy").save(root / "b.png")
    old(root / "b.png")
    return root


def facts_of(catalogue: Catalogue) -> dict[str, dict[str, Any]]:
    names = [fact.name for fact in stored_facts()]
    rows = catalogue.database.rows(f"SELECT path, {', '.join(names)} FROM photographs")
    return {
        path: {n: v for n, v in zip(names, values, strict=True) if v is not None}
        for path, *values in rows
    }


A = {"taken": "2024-01-31T15:45:07.250000", "camera": "Canon EOS R5", "lens": "50mm", **PLACE}


def test_a_rescan_follows_a_sidecar(root: Path) -> None:
    sidecar = root / "b.xmp"
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        assert facts_of(catalogue) == {"2024/a.jpg": A, "b.png": {}}
        sidecar.write_bytes(packet('exif:GPSLatitude="46,0N" exif:GPSLongitude="7,30E"'))
        old(sidecar)
        assert catalogue.scan().n_unchanged == 1
        assert facts_of(catalogue)["b.png"] == {"latitude": 46.0, "longitude": 7.5}
        assert catalogue.scan().n_unchanged == 2
        sidecar.unlink()
        assert catalogue.scan().n_unchanged == 1
        assert facts_of(catalogue) == {"2024/a.jpg": A, "b.png": {}}


def test_a_rescan_follows_a_corrected_clock(root: Path) -> None:
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        photograph(root / "2024" / "a.jpg", "2024:01:31 16:45:07")
        old(root / "2024" / "a.jpg")
        assert catalogue.scan().edited == ["2024/a.jpg"]
        expected = {"taken": "2024-01-31T16:45:07", "camera": "Canon EOS R5"}
        assert facts_of(catalogue)["2024/a.jpg"] == expected


def test_a_catalogue_with_a_new_column_reads_all_facts_again_but_no_pixels(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        catalogue.database.execute("UPDATE photographs SET latitude = NULL, longitude = NULL")
        path = catalogue.path
    monkeypatch.setattr("tagkin.catalogue.migrations.MIGRATIONS", (*MIGRATIONS, read_facts_again))
    with Database(path, write=True) as database:
        assert database.column("SELECT beside FROM photographs") == [b"", b""]
    monkeypatch.setattr("tagkin.catalogue.sources.folder_files.read_bytes", pytest.fail)
    with open_for_scan(root) as catalogue:
        result = catalogue.scan()
        assert (result.n_unchanged, result.edited, result.failures) == (0, [], [])
        assert facts_of(catalogue) == {"2024/a.jpg": A, "b.png": {}}
        assert catalogue.scan().n_unchanged == 2


# --- one row, everywhere -------------------------------------------------------------------------

ROW = """
    Fact(
        "iso",
        "Sensitivity",
        "INTEGER",
        exif=FactSource((0x8827,), lambda value: int.from_bytes(value[:2], "little") or None),
        xmp=FactSource(("exif:ISOSpeedRatings",), lambda text: int(text) if text else None),
        immich=FactSource(("iso",), lambda value: value),
        filter="name",
        text=lambda iso: f"ISO {iso}",
    ),
)
XMP_NAMESPACES"""
WITH_A_ROW = """
import json, sys, types
from pathlib import Path

import tagkin

file = Path(tagkin.__file__).parent / "collection" / "facts.py"
source, row = file.read_text(encoding="utf-8"), sys.argv[2]
assert source.count("\\n)\\nXMP_NAMESPACES") == 1 and "tagkin.collection" not in sys.modules
module = types.ModuleType("tagkin.collection.facts")
sys.modules[module.__name__] = module
exec(compile(source.replace("\\n)\\nXMP_NAMESPACES", row), file, "exec"), module.__dict__)

from tagkin.catalogue import database, migrations, open_for_scan
from tagkin.catalogue.selection import Selection
from tagkin.cli import app
from tagkin.immich.library import read_asset
from tagkin.server.filtering import facets_answer
from tagkin.server.readers import Readers, Views

database.check_schema = lambda *_: None  # whoever adds a fact writes the new digest


def add_iso(connection):
    connection.execute("ALTER TABLE photographs ADD COLUMN iso INTEGER")
    migrations.read_facts_again(connection)


migrations.MIGRATIONS += (add_iso,)
root = Path(sys.argv[1])
with open_for_scan(root) as catalogue:
    catalogue.scan()
    stored = catalogue.database.rows("SELECT path, iso FROM photographs ORDER BY path")
    views = Views(Readers(catalogue.path))
    (facet,) = [f for f in facets_answer(catalogue, views, Selection()) if f["name"] == "iso"]
    chosen = views.photographs(catalogue).select(catalogue.database, Selection(iso="400"))
    assert len(chosen.numbers) == 1, (stored, facet)
item = {"id": "1", "localDateTime": "2024-01-31T15:45:07Z", "checksum": "A" * 27 + "=",
        "originalFileName": "a.jpg", "exifInfo": {"iso": 200}}
asset = read_asset("address", item, None)
print(json.dumps({"stored": stored, "facet": facet, "immich": asset.facts}), flush=True)
sys.argv = ["tagkin", "explain", str(root / "2024/a.jpg")]
app()
"""


def test_a_new_fact_is_a_row_and_a_column(root: Path) -> None:
    """It is read from files, sidecars and Immich, stored, filtered, shown, and in JSON."""
    with open_for_scan(root) as catalogue:  # as it was before
        catalogue.scan()
    old(photograph(root / "2024" / "a.jpg", below={0x8827: 400}))
    old(root / "b.png").with_suffix(".xmp").write_bytes(packet('exif:ISOSpeedRatings="800"'))
    told = subprocess.run(
        [sys.executable, "-c", WITH_A_ROW, str(root), ROW],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    first, explained = told.stdout.split("\n", 1)
    answer = json.loads(first)
    assert answer["stored"] == [["2024/a.jpg", 400], ["b.png", 800]]
    assert answer["immich"] == {"iso": 200}
    choices = [["400", "400", 1], ["800", "800", 1]]
    title = {"name": "iso", "title": "Sensitivity", "kind": "name", "value": ""}
    assert answer["facet"] == title | {"choices": choices}
    assert "· ISO 400" in explained


def test_explain_and_pages_say_when_and_where(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        path = catalogue.path
    shown = "Wed 31 January 2024, 15:45:07 · Canon EOS R5 · 50mm · 47.3770° N, 8.5400° E"
    for options, text in (((), shown), (("--json",), json.dumps(A))):
        with pytest.raises(SystemExit):
            app(["explain", str(root / "2024" / "a.jpg"), "--catalogue", str(path), *options])
        assert text in capsys.readouterr().out
    with open_for_scan(root, path, command="review") as catalogue:
        review = Review(catalogue, tmp_path / "cache", fits=False)
        running = Running(review)
        browser = Browser(running.port)
        browser.open(running.access.key)
        numbers = {path: catalogue.photographs.content_of(path) for path in ("2024/a.jpg", "b.png")}
        shown_there = {
            path: [
                " ".join(line.text_content().split())
                for line in browser.get(f"/photographs/{number}").elements(
                    "//p[@class='quiet'][span/@title]"
                )
            ]
            for path, number in numbers.items()
        }
        assert shown_there == {"2024/a.jpg": [shown], "b.png": []}
        running.stop()
        review.close()
