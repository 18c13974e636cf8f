"""Facts of photographs: EXIF as Pillow writes it, XMP, sidecars, and their order."""

import io
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tagkin.collection import Capture, capture_of, read_metadata
from tagkin.collection.facts import (
    EXIF_TAGS,
    FACTS,
    XMP_NAMESPACES,
    Facts,
    describe_facts,
    read_exif,
    read_immich,
    read_xmp,
    stored_facts,
)

TAKEN = datetime(2024, 1, 31, 15, 45, 7)
ZURICH = {1: "N", 2: (47, 22, Fraction(3720, 100)), 3: "E", 4: (8, 32, 24)}
PLACE = {"latitude": 47.377, "longitude": 8.54}


def photograph(
    path: Path,
    taken: str | None = "2024:01:31 15:45:07",
    make: str = "Canon",
    model: str = "EOS R5",
    below: dict[int, Any] | None = None,
    gps: dict[int, Any] | None = None,
    xmp: str = "",
) -> Path:
    exif = Image.Exif()
    exif[0x010F], exif[0x0110] = make, model
    exif[0x8769] = ({} if taken is None else {0x9003: taken}) | (below or {})
    if gps:
        exif[0x8825] = gps
    written = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(written, "JPEG", exif=exif)
    with Image.open(written) as image:
        more: dict[str, Any] = {"xmp": packet(xmp)} if xmp else {}
        image.save(path, exif=image.getexif(), **more)
    return path


def packet(attributes: str, inside: str = "") -> bytes:
    spaces = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in XMP_NAMESPACES.items())
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
        f'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" {spaces}>'
        f"<rdf:Description {attributes}>{inside}</rdf:Description></rdf:RDF></x:xmpmeta>"
    ).encode()


def facts_of(path: Path) -> dict[str, Any]:
    return dict(read_metadata(path).facts)


# --- time and camera ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tif"])
def test_exif_of_every_container(tmp_path, name):
    path = photograph(tmp_path / name, gps=ZURICH, below={0x9291: "25", 0xA434: "50mm"})
    assert facts_of(path) == {
        "taken": "2024-01-31T15:45:07.250000",
        "camera": "Canon EOS R5",
        "lens": "50mm",
        **PLACE,
    }
    assert capture_of(read_metadata(path).facts) == Capture(
        TAKEN.replace(microsecond=250000), "Canon EOS R5"
    )


def test_two_cameras_of_one_model_have_numbers(tmp_path):
    path = photograph(tmp_path / "a.jpg", below={0xA431: "012345"})
    assert capture_of(read_metadata(path).facts) == Capture(TAKEN, "Canon EOS R5 012345")


@pytest.mark.parametrize("taken", [None, "", "0000:00:00 00:00:00", "    :  :     :  :  ", "noon"])
def test_a_clock_that_was_never_set_says_nothing(tmp_path, taken):
    path = photograph(tmp_path / "a.jpg", taken)
    assert "taken" not in facts_of(path)
    assert capture_of(read_metadata(path).facts) is None


@pytest.mark.parametrize(("part", "second"), [("3", ".300000"), ("003", ".003000"), ("x", "")])
def test_times_have_their_sub_seconds(tmp_path, part, second):
    path = photograph(tmp_path / "a.jpg", below={0x9291: part})
    assert facts_of(path)["taken"] == f"2024-01-31T15:45:07{second}"


def test_a_date_without_a_time_is_a_date(tmp_path):
    path = photograph(tmp_path / "a.jpg", "2004:05:01")
    assert facts_of(path)["taken"] == "2004-05-01"
    assert capture_of(read_metadata(path).facts) is None


def test_other_times_of_a_file_are_not_the_time_of_capture(tmp_path):
    exif = Image.Exif()
    exif[0x0132] = "2024:01:31 15:45:07"  # the last change
    exif[0x8769] = {0x9004: "2024:01:31 15:45:07"}  # the scan of a print
    path = tmp_path / "IMG_20240131_154507.jpg"
    Image.new("RGB", (8, 8)).save(path, exif=exif)
    assert facts_of(path) == {}
    assert capture_of(read_metadata(path).facts) is None


@pytest.mark.parametrize("source", [b"\1", b"\2"])
def test_the_day_of_scanning_is_not_the_time_of_capture(tmp_path, source):
    day = "2024:01:31 15:45:07"
    scan = photograph(tmp_path / "a.tif", day, below={0xA300: source, 0x9004: day})
    assert "taken" not in facts_of(scan)
    unsaid = photograph(tmp_path / "b.tif", day, below={0xA300: source})
    assert "taken" not in facts_of(unsaid)
    scanned = {0xA300: source, 0x9004: day}
    dated = photograph(tmp_path / "c.tif", "1985:07:14 12:00:00", below=scanned)
    assert facts_of(dated)["taken"] == "1985-07-14T12:00:00"  # a person wrote that
    camera = photograph(tmp_path / "d.jpg", day, below={0xA300: b"\3", 0x9004: day})
    assert facts_of(camera)["taken"] == "2024-01-31T15:45:07"


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff\xe1\x00\x10Exif\0\0II*\0", b"text"])
def test_a_damaged_file_has_no_facts(tmp_path, content):
    path = tmp_path / "IMG_20240131_154507.jpg"
    path.write_bytes(content)
    assert facts_of(path) == {}
    assert capture_of(read_metadata(path).facts) is None


@pytest.mark.parametrize(("stars", "expected"), [(3, 3), (0, None), (99, None)])
def test_stars_in_exif(tmp_path, stars, expected):
    exif = Image.Exif()
    exif[0x4746] = stars
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg", exif=exif)
    assert facts_of(tmp_path / "a.jpg").get("rating") == expected


def test_endless_texts_are_cut(tmp_path):
    path = photograph(tmp_path / "a.jpg", model="x" * 5000, below={0xA434: "y" * 5000})
    facts = facts_of(path)
    assert len(facts["camera"]) < 200
    assert len(facts["lens"]) == 100
    path.with_suffix(".xmp").write_bytes(packet(f'aux:Lens="{"z" * 5000}"'))
    assert facts_of(path)["lens"] == "z" * 100


# --- place -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
def test_places_in_either_order_of_bytes(tmp_path, order):
    exif = Image.Exif()
    exif.endian = order
    exif[0x8825] = ZURICH | {1: "S", 3: "W"}
    path = tmp_path / "a.jpg"
    Image.new("RGB", (8, 8)).save(path, exif=exif)
    assert facts_of(path) == {"latitude": -47.377, "longitude": -8.54}


@pytest.mark.parametrize(
    "gps",
    [
        {1: "N", 2: (0, 0, 0), 3: "E", 4: (0, 0, 0)},
        {1: "N", 2: (91, 0, 0), 3: "E", 4: (8, 0, 0)},
        {1: "N", 2: (47, 0, 0), 3: "E", 4: (180, 1, 0)},
        {1: "N", 2: (47, 0, 0)},
        {2: (47, 0, 0), 4: (8, 0, 0)},
        {1: "N", 2: (47, 0), 3: "E", 4: (8, 0)},
    ],
)
def test_places_that_are_nowhere(tmp_path, gps):
    assert facts_of(photograph(tmp_path / "a.jpg", None, gps=gps)).keys() == {"camera"}


def test_fractions_without_a_denominator():
    north, east = b"N\0", b"E\0"
    place = {1: north, 3: east, 4: bytes([8, 0, 0, 0, 1, 0, 0, 0, *bytes(16)])}
    whole = bytes([47, 0, 0, 0, 1, 0, 0, 0])
    assert read_exif(place | {2: whole + bytes(16)}) == {"latitude": 47.0, "longitude": 8.0}
    assert read_exif(place | {2: bytes(8) + whole + bytes(8)}) == {}
    assert read_exif(place | {2: bytes([47, 0, 0, 0]) + bytes(20)}) == {}


@pytest.mark.parametrize(
    ("latitude", "longitude", "expected"),
    [
        ("47,22.62N", "8,32.4E", PLACE),
        ("47,22,37.2N", "8,32,24E", PLACE),
        ("47,22.62S", "8,32.4W", {"latitude": -47.377, "longitude": -8.54}),
        ("47.377", "8.54", PLACE),
        ("0,0N", "0,0E", {}),
        ("95,0N", "8,0E", {}),
        ("nan", "8", {}),
        ("north", "8,0E", {}),
        ("47,22.62N", "", {}),
    ],
)
def test_places_in_xmp(latitude, longitude, expected):
    properties = {"exif:GPSLatitude": latitude, "exif:GPSLongitude": longitude}
    assert read_xmp(properties) == expected


# --- XMP, sidecars and Immich ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31T15:45:07", "2024-01-31T15:45:07"),
        ("2024-01-31T15:45:07.25+02:00", "2024-01-31T15:45:07.250000"),
        ("2024-01-31T15:45:07Z", "2024-01-31T15:45:07"),
        ("2024:01:31 15:45:07.000", "2024-01-31T15:45:07"),  # as darktable writes it
        ("2024-01-31T15:45", "2024-01-31T15:45:00"),
        ("2024-01-31", "2024-01-31"),
        ("2024", None),
        ("2024-13-31T15:45:07", None),
    ],
)
def test_times_in_xmp(text, expected):
    for name in ("exif:DateTimeOriginal", "photoshop:DateCreated"):
        assert read_xmp({name: text}).get("taken") == expected
    assert read_xmp({"xmp:CreateDate": text}) == {}  # of the file


def test_xmp_inside_counts_after_exif_but_for_the_rating(tmp_path):
    path = photograph(
        tmp_path / "a.jpg",
        gps=ZURICH,
        below={0x9291: "25", 0x4746: 2},
        xmp='exif:DateTimeOriginal="2020-01-01T00:00:01Z" tiff:Model="Other" aux:Lens="35mm" '
        'exif:GPSLatitude="1,0N" exif:GPSLongitude="1,0E" xmp:Rating="4"',
    )
    assert facts_of(path) == {
        "taken": "2024-01-31T15:45:07.250000",
        "camera": "Canon EOS R5",
        "lens": "35mm",
        "rating": 4,
        **PLACE,
    }


def test_a_sidecar_counts_before_the_photograph(tmp_path):
    path = photograph(tmp_path / "a.jpg", gps=ZURICH, below={0x9291: "25"})
    sidecar = tmp_path / "a.jpg.xmp"
    sidecar.write_bytes(
        packet(
            'exif:DateTimeOriginal="2024-01-31T16:45:07" xmp:Rating="-1"',
            "<exif:GPSLatitude>46,0N</exif:GPSLatitude>"
            "<exif:GPSLongitude><rdf:Seq><rdf:li>7,30E</rdf:li></rdf:Seq></exif:GPSLongitude>",
        )
    )
    assert facts_of(path) == {
        "taken": "2024-01-31T16:45:07",
        "camera": "Canon EOS R5",
        "rating": -1,
        "latitude": 46.0,
        "longitude": 7.5,
    }
    sidecar.write_bytes(packet('exif:DateTimeOriginal="2024-01-31T15:45:07"'))
    assert facts_of(path)["taken"] == "2024-01-31T15:45:07.250000"  # the same, more precisely
    for damaged in (b"", b"<x", packet('xmp:Rating="9"')):
        sidecar.write_bytes(damaged)
        assert "rating" not in facts_of(path)


def test_facts_of_ingredients_and_earlier_versions_are_not_those_of_the_photograph(tmp_path):
    path = photograph(tmp_path / "a.jpg", None)
    nested = '<rdf:Description xmp:Rating="5" exif:DateTimeOriginal="2020-02-02T02:02:02"/>'
    inside = f"<tiff:Artist><rdf:Bag><rdf:li>{nested}</rdf:li></rdf:Bag></tiff:Artist>"
    path.with_suffix(".xmp").write_bytes(packet("", inside))
    assert facts_of(path).keys() == {"camera"}


def test_immich_has_local_times_lenses_and_places():
    exif = {
        "make": "Canon",
        "model": "Canon EOS R5",
        "lensModel": "RF 35mm",
        "dateTimeOriginal": "2024-01-31T14:45:07.250Z",
        "latitude": 47.377,
        "longitude": 8.54,
        "rating": 3,
    }
    item = {"localDateTime": "2024-01-31T15:45:07.250Z", "exifInfo": exif}
    assert read_immich(item) == {
        "taken": "2024-01-31T15:45:07.250000",
        "camera": "Canon EOS R5",
        "lens": "RF 35mm",
        "rating": 3,
        **PLACE,
    }
    unknown = {"localDateTime": item["localDateTime"], "exifInfo": dict.fromkeys(exif)}
    assert read_immich(unknown) == {}
    assert read_immich({"localDateTime": item["localDateTime"]}) == {}
    nowhere = {"latitude": 0, "longitude": 0, "rating": 0}
    assert read_immich(unknown | {"exifInfo": nowhere}) == {}


# --- the table ---------------------------------------------------------------------------


def test_the_table_names_each_fact_once():
    names = [fact.name for fact in FACTS]
    assert len(set(names)) == len(names)
    prefixes = {key.partition(":")[0] for fact in FACTS if fact.xmp for key in fact.xmp.keys}
    assert prefixes <= XMP_NAMESPACES.keys()
    assert {0x9003, 0x0110, 2} <= EXIF_TAGS
    assert {fact.name for fact in FACTS} - {fact.name for fact in stored_facts()} == {
        "folder",
        "type",
    }


def test_facts_in_words():
    facts: Facts = {
        "taken": "2016-07-02T14:10:22.5",
        "camera": "Canon EOS R5",
        "serial": "7",
        "rating": 4,
        "latitude": -47.377,
        "longitude": 8.54,
    }
    assert describe_facts(facts) == [
        ("Date", "Sat 2 July 2016, 14:10:22"),
        ("Camera", "Canon EOS R5"),
        ("Rating", "★★★★"),
        ("Place", "47.3770° S, 8.5400° E"),
    ]
    assert describe_facts({"taken": "2016-07-02", "rating": -1}) == [
        ("Date", "Sat 2 July 2016"),
        ("Rating", "rejected"),
    ]
    assert describe_facts({}) == []
