"""Tags of other kinds: names of folders, places by GPS, people in XMP."""

import struct

import pytest
from PIL import Image

from tagkin.collection.kinds import Kinds, KindTag, read_kinds
from tagkin.collection.places import find_place
from tagkin.errors import InvalidInput
from tests.collection.xmp_samples import with_xmp
from tests.images.synthetic import picture, saved

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NAMESPACES = {
    "rdf": RDF,
    "mwg-rs": "http://www.metadataworkinggroup.com/schemas/regions/",
    "MP": "http://ns.microsoft.com/photo/1.2/",
    "MPRI": "http://ns.microsoft.com/photo/1.2/t/RegionInfo#",
    "MPReg": "http://ns.microsoft.com/photo/1.2/t/Region#",
    "Iptc4xmpExt": "http://iptc.org/std/Iptc4xmpExt/2008-02-29/",
    "exif": "http://ns.adobe.com/exif/1.0/",
}
REGIONS = """<mwg-rs:Regions rdf:parseType="Resource"><mwg-rs:RegionList><rdf:Bag>
<rdf:li><rdf:Description mwg-rs:Name="Anna" mwg-rs:Type="Face"/></rdf:li>
<rdf:li rdf:parseType="Resource"><mwg-rs:Name>Bob Ω</mwg-rs:Name><mwg-rs:Type>Face</mwg-rs:Type>
</rdf:li>
<rdf:li><rdf:Description mwg-rs:Name="Rex" mwg-rs:Type="Pet"/></rdf:li>
</rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions>"""
MICROSOFT = """<MP:RegionInfo rdf:parseType="Resource"><MPRI:Regions><rdf:Bag>
<rdf:li MPReg:Rectangle="0.1, 0.1, 0.1, 0.1" MPReg:PersonDisplayName="Carol"/>
</rdf:Bag></MPRI:Regions></MP:RegionInfo>"""
PERSONS = """<Iptc4xmpExt:PersonInImage><rdf:Bag><rdf:li>Anna</rdf:li><rdf:li> Dora  D.</rdf:li>
</rdf:Bag></Iptc4xmpExt:PersonInImage>"""


def xmp(inside, attributes=""):
    names = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    return f"<rdf:RDF {names}><rdf:Description {attributes}>{inside}</rdf:Description></rdf:RDF>"


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    return path


def names(path, **kinds):
    return [(tag.kind, tag.name) for tag in read_kinds([path], "a.jpg", Kinds(**kinds))]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ("1", ["2024"]),
        ("2-", ["Italy", "Rome"]),
        ("1,3", ["2024", "Rome"]),
        ("2-2", ["Italy"]),
        ("all", ["2024", "Italy", "Rome"]),
        ("4", []),
        ("", []),
    ],
)
def test_names_of_folders_at_chosen_levels(levels, expected):
    kinds = Kinds(folders=levels, without=["dcim", "1??CANON"])
    assert kinds.folder_tags("2024/Italy/Rome/DCIM/100Canon/a.jpg") == expected


@pytest.mark.parametrize("levels", ["top", "0", "3-2", "1,2-0"])
def test_levels_that_are_none(levels):
    with pytest.raises(InvalidInput, match=f"found '{levels}'"):
        Kinds(folders=levels)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (REGIONS, ["Anna", "Bob Ω"]),
        (MICROSOFT, ["Carol"]),
        (PERSONS, ["Anna", "Dora D."]),
        (REGIONS + PERSONS, ["Anna", "Bob Ω", "Dora D."]),
    ],
)
def test_people_inside_and_in_sidecars(photo, inside, expected):
    sidecar = photo.with_name("a.jpg.xmp")
    sidecar.write_text(xmp(inside))
    tags = read_kinds([photo], "a.jpg", Kinds(people=True))
    assert tags == [KindTag("person", name, str(sidecar)) for name in expected]
    sidecar.unlink()
    photo.write_bytes(with_xmp(photo.read_bytes(), xmp(inside)))
    tags = read_kinds([photo], "a.jpg", Kinds(people=True))
    assert tags == [KindTag("person", name, str(photo)) for name in expected]
    assert names(photo) == []


def test_damaged_metadata_have_no_people(photo):
    photo.with_name("a.jpg.xmp").write_text(xmp(REGIONS)[:-20])
    assert names(photo, people=True, places="en") == []


PARIS = [("place", "France"), ("place", "France|Île-de-France")]
SYDNEY = "Australia|New South Wales|"


def in_exif(path, order, latitude, longitude):
    """Write a photograph with a position in EXIF, in either byte order."""

    def fractions(angle):
        degrees, minutes = divmod(abs(angle), 1)
        values = (int(degrees), 1, round(minutes * 60 * 10_000), 10_000, 0, 1)
        return struct.pack(f"{order}6I", *values)

    entries = [
        (1, 2, 2, b"S\0\0\0" if latitude < 0 else b"N\0\0\0"),
        (2, 5, 3, struct.pack(f"{order}I", 80)),
        (3, 2, 2, b"W\0\0\0" if longitude < 0 else b"E\0\0\0"),
        (4, 5, 3, struct.pack(f"{order}I", 104)),
    ]
    gps = struct.pack(f"{order}H", 4)
    gps += b"".join(struct.pack(f"{order}HHI4s", *entry) for entry in entries) + bytes(4)
    first = struct.pack(f"{order}HHHII", 1, 0x8825, 4, 1, 26) + bytes(4)
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8)
    block = head + first
    block += gps.ljust(80 - len(block), b"\0")
    block += fractions(latitude) + fractions(longitude)
    Image.new("RGB", (8, 8)).save(path, exif=b"Exif\0\0" + block)


@pytest.mark.parametrize("order", ["<", ">"])
def test_places_by_exif(photo, order):
    in_exif(photo, order, 48.8566, 2.3522)
    country, region, town = names(photo, places="en")
    assert [country, region] == PARIS
    assert town[1].startswith("France|Île-de-France|")
    in_exif(photo, order, -33.87, 151.2)
    assert names(photo, places="en")[-1][1].startswith(SYDNEY)
    assert names(photo, people=True) == []


@pytest.mark.parametrize("text", ["48,51.396N", "48,51,23.8N"])
def test_a_position_in_the_sidecar_comes_first(photo, text):
    in_exif(photo, "<", -33.87, 151.2)
    position = f'exif:GPSLatitude="{text}" exif:GPSLongitude="2,21.132E"'
    photo.with_name("a.jpg.xmp").write_text(xmp("", position))
    assert names(photo, places="fr")[0] == ("place", "France")
    assert names(photo, places="de")[0] == ("place", "Frankreich")


def test_a_camera_without_a_fix_has_no_place(photo):
    in_exif(photo, "<", 0.0, 0.0)
    assert names(photo, places="en") == []


def test_places_far_from_towns():
    assert find_place((0.0, -30.0)) is None
    assert find_place((43.77, 11.25), "de") == "Italien|Tuscany|Florence"
    assert find_place((43.77, 11.25), "no such language") == "Italy|Tuscany|Florence"
    assert find_place((43.77, 371.25 - 360), "en") == find_place((43.77, 11.25), "en")
    assert (find_place((72.6, -38.5)) or "").count("|") < 2  # the ice of Greenland
