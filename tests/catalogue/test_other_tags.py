"""Folders, places and people: shown, found, written when asked, and never learned."""

import shutil

import pytest

from tagkin.catalogue import Filters, open_for_scan
from tagkin.collection.sidecars import provenance_of, tags_of
from tagkin.errors import InvalidInput
from tests.catalogue.photographs import check_invariants, files, found_tags
from tests.collection.test_kinds import PERSONS, xmp

FLORENCE = 'exif:GPSLatitude="43,46.2N" exif:GPSLongitude="11,15E"'
OWN = (
    '<dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Bag><rdf:li>florence</rdf:li>'
    "</rdf:Bag></dc:subject>"
)
ALL = {"folders": "all", "places": True, "people": True}


@pytest.fixture
def others(catalogue, folder, monkeypatch):
    """The catalogue, with tags of all kinds."""
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    sidecar = folder.root / "2024/d.jpg.xmp"
    sidecar.write_text(xmp(PERSONS, FLORENCE))
    folder.age(sidecar)
    catalogue.scan(kinds=ALL)
    return catalogue


def of(catalogue, path):
    return [(tag.kind, tag.name) for tag in catalogue.explain(path).others]


EXPECTED = [
    ("folder", "2024"),
    ("person", "Anna"),
    ("person", "Dora D."),
    ("place", "Italien|Tuscany|Florence"),
]


def test_they_are_read_and_kept_apart(others):
    assert of(others, "2024/d.jpg") == EXPECTED
    assert of(others, "2024/c.jpg") == [("folder", "2024")]
    assert of(others, "a.jpg") == []
    texts = {tag.kind: tag.text for tag in others.explain("2024/d.jpg").others}
    assert texts["person"] == "named in 2024/d.jpg.xmp"
    names = {tag.name for tag in others.tags.list_all()}
    assert names == {"beach", "sea", "dog"}
    contents = {c.file.rpartition("/")[2]: c.tags for c in others.photographs.with_tags()}
    assert contents["d.jpg"] == []  # nothing to learn from
    assert others.photographs.count().n_untagged == 1
    check_invariants(others)


def test_they_are_searched_alone_and_with_keywords(others):
    def search(*names):
        numbers = []
        for name in names:
            number = others.tags.numbers_of([name]).get(name)
            numbers.append(number or others.other_tags.complete(name)[0].id)
        return [path for _, path, _ in others.photographs.search(numbers)]

    assert search("2024") == ["2024/c.jpg", "2024/d.jpg"]
    assert search("2024", "dog") == search("dog", "2024") == ["2024/c.jpg"]
    assert search("Italien") == search("Anna") == ["2024/d.jpg"]
    counts = {tag.name: tag.n_found for tag in others.other_tags.list_all("place")}
    assert counts == {"Italien": 1, "Italien|Tuscany": 1, "Italien|Tuscany|Florence": 1}


def test_later_scans_read_them_again_until_told_otherwise(others, folder, monkeypatch):
    monkeypatch.setenv("LANG", "fr_FR.UTF-8")  # the language stays
    shutil.move(folder.root / "2024", folder.root / "2025")
    others.scan()
    assert of(others, "2025/d.jpg") == [("folder", "2025"), *EXPECTED[1:]]
    assert [tag.name for tag in others.other_tags.list_all("folder")] == ["2025"]
    others.scan(kinds={"places": False, "folders": "none"})
    assert of(others, "2025/d.jpg") == EXPECTED[1:3]
    (folder.root / "2025/d.jpg").unlink()
    others.scan()
    assert others.other_tags.list_all("person") == []


def test_they_are_written_when_asked_and_stay_of_their_kind(others, folder, tmp_path):
    before = files(folder.root)
    assert others.write().files == []
    run = others.write(kinds=["place", "person"], under="auto").run
    data = (folder.root / "2024/d.jpg.xmp").read_bytes()
    assert b"auto|Italien|Tuscany|Florence" in data
    assert b"<rdf:li>Florence</rdf:li>" in data
    assert {w.kind for w in provenance_of(data)} == {"place", "person"}
    assert tags_of(data) == []
    assert others.write(kinds=["place", "person"]).files == []
    others.scan()
    assert "2024/d.jpg" not in found_tags(others)
    with open_for_scan(folder.root, tmp_path / "other.sqlite") as other:  # made again
        other.scan()
        assert "2024/d.jpg" not in found_tags(other)
    others.undo(run)
    assert files(folder.root) == before


def test_a_keyword_of_one_s_own_stays_a_keyword(others, folder):
    path = folder.root / "2024/d.jpg.xmp"
    others.write(kinds=["place", "person"])
    # as darktable writes it: every level in dc:subject, and keywords in both lists
    text = path.read_text()
    town = "<rdf:li>Florence</rdf:li>"
    text = text.replace(town, f"<rdf:li>Italien</rdf:li>{town}")
    assert tags_of(text.encode()) == []
    start = text.index("<rdf:li>", text.index("<lr:hierarchicalSubject"))
    text = f"{text[:start]}<rdf:li>Italien</rdf:li>{text[start:]}"
    assert tags_of(text.encode()) == ["Italien"]
    others.undo()
    path.write_text(path.read_text().replace("</rdf:Description>", OWN + "</rdf:Description>"))
    others.scan()
    (planned,) = others.write(kinds=["place", "person"], dry_run=True).files
    assert list(planned.tags) == ["Anna", "Dora D."]


@pytest.mark.parametrize(
    "options",
    [
        {"kinds": ["animal"]},
        {"kinds": ["place"], "remove": True},
        {"kinds": ["place"], "filters": Filters(tags=["dog"])},
    ],
)
def test_what_does_not_go_with_them(others, options):
    with pytest.raises(InvalidInput):
        others.write(**options)
