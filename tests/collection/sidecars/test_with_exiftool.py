"""What exiftool and exiv2, which other programs use, say of sidecars that tagkin wrote."""

import json
import shutil
import subprocess

import pytest

from tagkin.collection.sidecars import (
    Provenance,
    add_tags,
    provenance_of,
    restore,
    tags_of,
    with_tags,
)
from tests.collection.sidecars.forms import PROGRAMS
from tests.collection.xmp_samples import subjects

TAGS = [
    "place|Österreich|Wien",
    "R&B <x> \"y\" 'z'",
    "海|海岸",
    "شاطئ",
    "🐕‍🦺",
    "हिन्दी",
    "a=b, c; d",
]
RUN = Provenance("12", {"شاطئ": 0.875})


@pytest.fixture
def read_fields(exiftool):
    """All that exiftool reads: names with their groups, lists as lists."""

    def asked(path):
        groups = ("-G1", "-j", "-struct", "-XMP:all", "-x", "XMPToolkit")
        answer = json.loads(exiftool(*groups, path))[0]
        return {name: value for name, value in answer.items() if name != "SourceFile"}

    return asked


def listed(value):
    return [] if value is None else value if isinstance(value, list) else [value]


@pytest.mark.parametrize("form", [None, *PROGRAMS])
def test_exiftool_reads_back_every_field_and_all_the_rest(form, read_fields, tmp_path):
    path = tmp_path / "img.xmp"
    before = {}
    if form is not None:
        path.write_bytes(PROGRAMS[form])
        before = read_fields(path)
    written = add_tags(path, TAGS, RUN)
    after = read_fields(path)
    fields = {
        "XMP-dc:Subject": [tag.rsplit("|", 1)[-1] for tag in TAGS],
        "XMP-lr:HierarchicalSubject": TAGS,
        "XMP-digiKam:TagsList": [tag.replace("|", "/") for tag in TAGS],
    }
    if "XMP-microsoft:LastKeywordXMP" in before:
        fields["XMP-microsoft:LastKeywordXMP"] = fields["XMP-digiKam:TagsList"]
    for name, values in fields.items():
        had = listed(before.get(name))
        actual = [str(value) for value in listed(after.pop(name))]
        assert sorted(actual[-len(values) :]) == sorted(values)
        assert had == actual[: len(had)]
        before.pop(name, None)
    records = {record["Tag"]: record for record in listed(after.pop("XMP-tagkin:Written"))}
    assert set(records) == set(TAGS)
    assert all(str(record["Run"]) == "12" for record in records.values())
    assert float(records["شاطئ"]["Confidence"]) == 0.875
    assert after == before
    restore(written)
    if form is None:
        assert not path.exists()
    else:
        other = tmp_path / "other.xmp"
        other.write_bytes(PROGRAMS[form])
        assert read_fields(path) == read_fields(other)


def test_what_exiftool_makes_of_it_can_be_written_and_cleaned(exiftool, read_fields, tmp_path):
    """It writes a sidecar anew, in its own form, with everything that was in it."""
    path = tmp_path / "img.xmp"
    written = add_tags(path, ["sea", "nature|tree"], RUN)
    exiftool("-overwrite_original", "-XMP:Rating=3", "-XMP-dc:Subject+=theirs", path)
    assert set(tags_of(path.read_bytes())) == {"sea", "nature|tree", "theirs"}
    with_tags(path.read_bytes(), ["more"], RUN)
    undone = restore(written)
    assert undone.how == "untagged"
    assert read_fields(path) == {"XMP-xmp:Rating": 3, "XMP-dc:Subject": ["theirs"]}


@pytest.mark.parametrize("form", PROGRAMS)
def test_what_is_read_is_what_exiftool_reads(form, read_fields, tmp_path):
    path = tmp_path / "img.xmp"
    path.write_bytes(PROGRAMS[form])
    keywords = read_fields(path)
    levels = listed(keywords.get("XMP-lr:HierarchicalSubject"))
    levels += [t.replace("/", "|") for t in listed(keywords.get("XMP-digiKam:TagsList"))]
    words = {w for w in levels if w.split("|")[0] not in ("darktable", "_Digikam_Internal_Tags_")}
    ends = {word.rsplit("|", 1)[-1] for word in levels} | {"darktable"}
    words |= {word for word in listed(keywords.get("XMP-dc:Subject")) if word not in ends}
    assert set(tags_of(path.read_bytes())) == words


@pytest.fixture
def exiv2():
    """The tags in dc:subject, as exiv2 reads them."""
    if shutil.which("exiv2") is None:
        pytest.skip("exiv2 is not installed")

    def asked(path):
        command = ["exiv2", "-K", "Xmp.dc.subject", "-Pt", str(path)]
        output = subprocess.run(command, capture_output=True, check=True).stdout
        return output.decode().strip().split(", ")

    return asked


def test_tags_go_to_exiv2_and_come_back(exiv2, tmp_path):
    path = tmp_path / "img.xmp"
    add_tags(path, ["animal|dog", "海"], RUN)
    assert exiv2(path) == ["dog", "海"]
    commands = [
        "-Madd Xmp.dc.subject XmpBag from exiv2",
        "-Madd Xmp.lr.hierarchicalSubject XmpBag from|exiv2",
    ]
    subprocess.run(["exiv2", *commands, str(path)], capture_output=True, check=True)
    assert exiv2(path) == ["from exiv2"]
    assert set(tags_of(path.read_bytes())) == {"animal|dog", "海", "from|exiv2", "from exiv2"}
    assert {w.tag for w in provenance_of(path.read_bytes())} == {"animal|dog", "海"}
    add_tags(path, ["sea"], RUN, remove=["animal|dog"])
    assert set(exiv2(path)) == {"from exiv2", "exiv2", "海", "sea"}


ENCODINGS = ["ISO-8859-1", "windows-1252", "us-ascii", "UTF-16", "UTF-32"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_program_reads_a_sidecar_that_was_in_another_encoding(
    encoding, read_fields, exiv2, tmp_path
):
    path = tmp_path / "img.xmp"
    word = "Koln" if encoding == "us-ascii" else "Köln"
    xml = f'<?xml version="1.0" encoding="{encoding}"?>\n{subjects(word)}'
    before = xml.encode(encoding)
    path.write_bytes(before)
    written = add_tags(path, ["Zürich", "🐕"], RUN)
    assert read_fields(path)["XMP-dc:Subject"] == [word, "Zürich", "🐕"]
    assert exiv2(path) == [word, "Zürich", "🐕"]
    restore(written)
    assert path.read_bytes() == before


def test_every_program_reads_a_property_that_stood_twice(read_fields, exiv2, tmp_path):
    path = tmp_path / "img.xmp"
    xml = subjects("dog")
    start, end = xml.index("<rdf:Description"), xml.index("</rdf:RDF>")
    path.write_text(xml[:end] + xml[start:end].replace("dog", "cat") + xml[end:])
    add_tags(path, ["sea"], RUN)
    assert read_fields(path)["XMP-dc:Subject"] == ["dog", "cat", "sea"]
    assert exiv2(path) == ["dog", "cat", "sea"]
