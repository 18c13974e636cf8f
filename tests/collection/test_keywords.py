"""The tags that photographs carry: every place, every program's way, and damaged ones."""

import io
import json
import os
import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from tagkin.collection import read_keywords, read_metadata
from tagkin.errors import UnreadableImage
from tagkin.images import Failure, decode
from tagkin.images.file_blocks import first_directory
from tests.collection import xmp_samples as samples
from tests.images.raw_writer import dng
from tests.images.synthetic import HAS_AVIF, chunk, coded, picture, psd, resource, saved
from tests.privileges import without_privileges

JPEG = saved(picture(), "JPEG")
PROGRAMS = [
    (samples.LIGHTROOM, samples.LIGHTROOM_TAGS),
    (samples.DIGIKAM, samples.DIGIKAM_TAGS),
    (samples.DARKTABLE, samples.DARKTABLE_TAGS),
]


def tags_and_problems(path):
    metadata = read_metadata(path)
    return list(metadata.tags), metadata.problems


@pytest.fixture
def photo(tmp_path):
    """A function that writes a photograph and gives its path."""

    def write(data, name="photo.jpg"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def in_format(form, xmp):
    """A file of that format with XMP in it."""
    xmp = xmp.encode() if isinstance(xmp, str) else xmp
    if form == "JPEG":
        return samples.with_xmp(JPEG, xmp)
    if form == "TIFF":
        return saved(picture(), "TIFF", tiffinfo={700: xmp})
    if form in ("PNG", "PNG compressed", "PNG after the pixels"):
        data = saved(picture(), "PNG")
        packed = form == "PNG compressed"
        head = b"XML:com.adobe.xmp\0" + bytes([packed, 0]) + b"\0\0"
        text = chunk(b"iTXt", head + (zlib.compress(xmp) if packed else xmp))
        at = data.index(b"IEND") - 4 if form == "PNG after the pixels" else 33
        return data[:at] + text + data[at:]
    if form in ("GIF", "GIF after the pixels"):
        data = saved(picture(), "GIF")
        block = b"!\xff\x0bXMP DataXMP" + xmp + b"\x01" + bytes(range(255, -1, -1)) + b"\0"
        at = len(data) - 1 if form == "GIF after the pixels" else 13 + 3 * (2 << (data[10] & 7))
        return data[:at] + block + data[at:]
    if form == "PSD":
        return psd(picture(), resource(0x03ED, b"odd") + resource(0x0424, xmp))
    if form in ("JPEG2000", "JPEG2000 after the pixels"):
        data = saved(picture(), "JPEG2000")
        uuid = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
        box = struct.pack(">I4s", 24 + len(xmp), b"uuid") + uuid + xmp
        return data + box if "after" in form else data[:32] + box + data[32:]
    if form in ("HEIF", "AVIF"):
        return coded(form, Image.fromarray(picture()), xmp=xmp)
    return saved(picture(), form, xmp=xmp)


# --- where they stand ---


@pytest.mark.parametrize(("xmp", "tags"), PROGRAMS)
@pytest.mark.parametrize(
    "form",
    [
        *("JPEG", "TIFF", "PNG", "PNG compressed", "PNG after the pixels", "WEBP", "HEIF", "AVIF"),
        *("GIF", "GIF after the pixels", "PSD", "JPEG2000", "JPEG2000 after the pixels"),
    ],
)
def test_xmp_in_every_format(form, xmp, tags, photo):
    if form == "AVIF" and not HAS_AVIF:
        pytest.skip("this Pillow has no AVIF")
    path = photo(in_format(form, xmp))
    assert tags_and_problems(path) == (tags, [])
    assert read_keywords(str(path)) == tags
    assert decode(path.read_bytes()).shape == (32, 48, 3)


@pytest.mark.parametrize(("xmp", "tags"), PROGRAMS)
@pytest.mark.parametrize("name", ["photo.xmp", "photo.jpg.xmp", "photo.XMP", "photo.jpg.XMP"])
def test_sidecars(name, xmp, tags, photo):
    path = photo(JPEG)
    photo(xmp.encode(), name)
    assert tags_and_problems(path) == (tags, [])


def test_everything_is_put_together(photo):
    data = samples.with_iptc(JPEG, samples.iptc(b"iptc", b"dog", b"both"))
    exif = Image.Exif()
    exif[0x9C9E] = "windows;both; dog\0".encode("utf-16-le")
    data = samples.with_segments(data, (0xE1, exif.tobytes()))
    path = photo(samples.with_xmp(data, samples.subjects("xmp", "both")))
    photo(samples.subjects("full", "xmp").encode(), "photo.jpg.xmp")
    photo(samples.DIGIKAM.encode(), "photo.xmp")
    assert read_keywords(path) == ["animal|dog", "xmp", "both", "windows", "iptc", "full", "red"]


def test_files_without_tags(photo):
    for form in ("JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP"):
        assert tags_and_problems(photo(saved(picture(), form))) == ([], [])
    for data in (b"", b"text", JPEG[:3], JPEG[:30], bytes(100)):
        assert tags_and_problems(photo(data)) == ([], [])


def test_photographs_that_cannot_be_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    for name, reason in (
        ("gone.jpg", "no such file"),
        ("pipe.jpg", "not a regular"),
        (".", "folder"),
    ):
        with pytest.raises(UnreadableImage, match=reason):
            read_keywords(tmp_path / name)


def test_sidecars_that_cannot_be_read(photo, tmp_path):
    path = photo(samples.with_xmp(JPEG, samples.subjects("dog")))
    (tmp_path / "photo.xmp").mkdir()
    os.mkfifo(tmp_path / "photo.jpg.xmp")
    tags, problems = tags_and_problems(path)
    assert tags == ["dog"]
    assert [p.file for p in problems] == [str(tmp_path / n) for n in ("photo.jpg.xmp", "photo.xmp")]
    assert problems[1].reason == "a folder, not a file"


def test_a_sidecar_that_leads_back_to_itself(photo, tmp_path):
    path = photo(samples.with_xmp(JPEG, samples.subjects("dog")))
    (tmp_path / "photo.xmp").symlink_to(tmp_path / "photo.xmp")
    (tmp_path / "photo.jpg.xmp").symlink_to(tmp_path / "gone")
    sidecar = str(tmp_path / "photo.xmp")
    assert tags_and_problems(path) == (
        ["dog"],
        [Failure(sidecar, "a link that leads back to itself")],
    )


def test_a_name_too_long_for_a_sidecar(photo):
    path = photo(samples.with_xmp(JPEG, samples.subjects("dog")), "x" * 250 + ".jpg")
    assert tags_and_problems(path) == (["dog"], [])


def test_closed_photographs_and_sidecars(open_folder):
    (open_folder / "a.jpg").write_bytes(samples.with_xmp(JPEG, samples.subjects("dog")))
    (open_folder / "a.xmp").write_text(samples.subjects("cat"))
    (open_folder / "a.xmp").chmod(0)
    (open_folder / "b.jpg").write_bytes(JPEG)
    (open_folder / "b.jpg").chmod(0)
    with without_privileges():
        result = tags_and_problems(open_folder / "a.jpg")
        with pytest.raises(UnreadableImage, match="permission denied"):
            tags_and_problems(open_folder / "b.jpg")
    assert result == (["dog"], [Failure(str(open_folder / "a.xmp"), "permission denied")])


def test_a_sidecar_is_not_its_own(photo):
    assert tags_and_problems(photo(samples.DIGIKAM.encode(), "photo.xmp")) == ([], [])


def test_only_the_head_of_a_large_file_is_read(tmp_path):
    path = tmp_path / "large.tif"
    path.write_bytes(in_format("TIFF", samples.subjects("dog")))
    with path.open("r+b") as file:
        file.truncate(5 << 30)  # takes no space, and no memory holds it
    assert read_keywords(path) == ["dog"]


def test_nothing_is_written(photo, tmp_path):
    path = photo(in_format("JPEG", samples.LIGHTROOM))
    photo(samples.DARKTABLE.encode(), "photo.xmp")
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    tags_and_problems(path)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()} == before


# --- forms of XMP ---


@pytest.mark.parametrize(
    "xmp",
    [
        samples.subjects("dog", "red"),
        samples.subjects("dog", "red", kind="Seq"),
        samples.subjects("dog", "red", kind="Alt"),
        samples.subjects(" dog ", "", "red\n", "dog"),
        samples.packet("<dc:subject>dog</dc:subject><dc:subject>red</dc:subject>"),
        samples.packet(
            "<dc:subject><rdf:Bag><rdf:li rdf:parseType='Resource'><rdf:value>dog</rdf:value>"
            "</rdf:li><rdf:li><rdf:Description rdf:value='red'/></rdf:li></rdf:Bag></dc:subject>"
        ),
        samples.subjects("dog", "red").replace("dc:", "purl:").replace(":dc=", ":purl="),
        samples.subjects("<![CDATA[dog]]>", "r&#101;&#x64;"),
        f"<rdf:RDF {samples.NAMESPACES}><rdf:Description dc:subject='dog'/>"
        "<rdf:Description><dc:subject>red</dc:subject></rdf:Description></rdf:RDF>",
        "\ufeff \n" + samples.subjects("dog", "red") + "\0\0\0",
    ],
)
def test_forms_that_say_the_same(xmp, photo):
    assert tags_and_problems(photo(samples.with_xmp(JPEG, xmp))) == (["dog", "red"], [])


@pytest.mark.parametrize("subject", ["<dc:subject/>", "<dc:subject><rdf:Bag/></dc:subject>"])
def test_empty_lists_are_no_problem(subject, photo):
    assert tags_and_problems(photo(samples.with_xmp(JPEG, samples.packet(subject)))) == ([], [])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_of_sidecars(encoding, photo):
    path = photo(JPEG)
    xmp = '<?xml version="1.0"?>' + samples.subjects("Müllers Hund", "日本", "🐕")
    photo(xmp.encode(encoding), "photo.xmp")
    assert tags_and_problems(path) == (["Müllers Hund", "日本", "🐕"], [])


def test_latin_1_in_what_should_be_utf_8(photo):
    path = photo(samples.with_xmp(JPEG, samples.subjects("Österreich").encode("latin-1")))
    assert read_keywords(path) == ["Österreich"]


def test_levels(photo):
    xmp = samples.packet(
        "<dc:subject><rdf:Bag><rdf:li>dog</rdf:li><rdf:li>animal</rdf:li><rdf:li>a|b</rdf:li>"
        "<rdf:li>b</rdf:li></rdf:Bag></dc:subject><lr:hierarchicalSubject><rdf:Bag>"
        "<rdf:li>friends | dog|</rdf:li><rdf:li>animal|dog</rdf:li></rdf:Bag>"
        "</lr:hierarchicalSubject>"
    )
    tags = read_keywords(photo(samples.with_xmp(JPEG, xmp)))
    assert tags == ["friends|dog", "animal|dog", "a|b"]  # darktable repeats parents


def test_tags_of_regions_and_earlier_versions_are_not_the_photographs(photo):
    xmp = samples.packet(
        "<dc:subject><rdf:Bag><rdf:li>dog</rdf:li></rdf:Bag></dc:subject>"
        "<x:Regions xmlns:x='urn:x' rdf:parseType='Resource'><dc:subject><rdf:Bag><rdf:li>nose"
        "</rdf:li></rdf:Bag></dc:subject></x:Regions>"
    )
    assert read_keywords(photo(samples.with_xmp(JPEG, xmp))) == ["dog"]


def test_names_of_faces_and_places_are_no_tags(photo):
    """Only keywords are: nobody's name becomes a tag because a program has put it elsewhere."""
    xmp = samples.packet(
        "<dc:subject><rdf:Bag><rdf:li>dog</rdf:li></rdf:Bag></dc:subject>"
        "<mwg-rs:Regions xmlns:mwg-rs='http://www.metadataworkinggroup.com/schemas/regions/' "
        "rdf:parseType='Resource'><mwg-rs:RegionList><rdf:Bag><rdf:li rdf:parseType='Resource'>"
        "<mwg-rs:Name>Ada</mwg-rs:Name><mwg-rs:Type>Face</mwg-rs:Type></rdf:li></rdf:Bag>"
        "</mwg-rs:RegionList></mwg-rs:Regions>"
        "<ext:PersonInImage xmlns:ext='http://iptc.org/std/Iptc4xmpExt/2008-02-29/'><rdf:Bag>"
        "<rdf:li>Ada</rdf:li></rdf:Bag></ext:PersonInImage>"
        "<ps:City xmlns:ps='http://ns.adobe.com/photoshop/1.0/'>Graz</ps:City>"
        "<exif:GPSLatitude xmlns:exif='http://ns.adobe.com/exif/1.0/'>47,4.2N"
        "</exif:GPSLatitude>"
    )
    assert read_keywords(photo(samples.with_xmp(JPEG, xmp))) == ["dog"]


def test_xmp_that_goes_on_in_more_segments(photo):
    words = [f"word number {i} of many" for i in range(4000)]
    more = samples.subjects(*words).encode()
    assert len(more) > 65536
    head = b"http://ns.adobe.com/xmp/extension/\0" + b"A" * 32
    parts = [
        (0xE1, head + struct.pack(">II", len(more), at) + more[at : at + 60000])
        for at in range(0, len(more), 60000)
    ]
    data = samples.with_segments(JPEG, *reversed(parts))
    assert tags_and_problems(photo(samples.with_xmp(data, samples.subjects("dog")))) == (
        ["dog", *words],
        [],
    )


# --- damaged XMP ---


def check_unread(path):
    tags, problems = tags_and_problems(path)
    assert tags == []
    assert len(problems) == 1
    assert problems[0].file == str(path)
    assert "its XMP is not well-formed" in problems[0].reason


def test_what_is_not_well_formed_is_named_and_not_read(photo):
    whole = samples.subjects("dog", "R&amp;B &#233;")
    for xmp in (
        whole[: whole.index("</rdf:Bag>")],
        whole.replace("xmlns:x=", "y="),
        whole.replace("R&amp;B", "R&B"),
        whole.replace("</x:xmpmeta>", "</x:xmpmeta><x>"),
        re.sub(r" xmlns:dc=['\"][^'\"]*['\"]", "", whole),
        samples.subjects("a < b", "I <3 dogs"),
    ):
        check_unread(photo(samples.with_xmp(JPEG, xmp)))
    odd = whole.replace("dog", "d\x01og\x00")
    assert tags_and_problems(photo(samples.with_xmp(JPEG, odd))) == (["dog", "R&B é"], [])


def test_what_is_not_xml_is_said(photo):
    for xmp in ("no xml at all", "\x89PNG"):
        tags, problems = tags_and_problems(photo(samples.with_xmp(JPEG, xmp)))
        assert tags == []
        assert problems == [Failure(str(photo(samples.with_xmp(JPEG, xmp))), "its XMP is not XML")]
    assert tags_and_problems(photo(samples.with_xmp(JPEG, " \0 "))) == ([], [])


def test_entities_are_refused(photo):
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "lol">{lol}]>' + samples.subjects("&l9;", "dog")
    stolen = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>' + samples.subjects("&f;")
    for xmp in (bomb, stolen):
        tags, problems = tags_and_problems(photo(samples.with_xmp(JPEG, xmp)))
        assert tags == []
        assert "declares entities and was not read" in problems[0].reason


def test_damage_cannot_hide_a_document_type(photo):
    kind = '<?<!DOCTYPE x [<!ATTLIST rdf:li rdf:value CDATA "cat"><!ENTITY a "cat">]>'
    xmp = kind + samples.subjects("dog").replace("<rdf:li>", '<rdf:li x="&a;">')
    check_unread(photo(samples.with_xmp(JPEG, xmp)))


def heif(xmp):
    from pillow_heif import from_pillow

    out = io.BytesIO()
    from_pillow(Image.fromarray(picture())).save(out, xmp=xmp.encode())
    return out.getvalue()


def test_damaged_metadata_never_raise(photo):
    """Bytes changed and cut in every block: tags or none, never an error."""
    rng = np.random.default_rng(3)
    exif = Image.Exif()
    exif[0x9C9E] = "windows;dog\0".encode("utf-16-le")
    jpeg = samples.with_iptc(in_format("JPEG", samples.DIGIKAM), samples.iptc(b"iptc"))
    files = [samples.with_segments(jpeg, (0xE1, exif.tobytes()))]
    files += [in_format(form, samples.DARKTABLE) for form in ("PNG compressed", "TIFF", "WEBP")]
    if HAS_AVIF:
        files.append(in_format("AVIF", samples.DARKTABLE))
    files.append(heif(samples.DARKTABLE))
    signatures = (b"\xff\xd8\xff\xe1", b"\x89PNG\r\n\x1a\n", b"RIFF\xff\xff\xff\xffWEBP")
    signatures += (
        b"II*\0",
        b"MM\0*",
        b"II+\0\x08\0\0\0",
        b"MM\0+\0\x08\0\0",
        b"\0\0\0\x18ftypheic",
    )
    files += [start + rng.bytes(500) for start in signatures]
    for data in files:
        for _ in range(80):
            changed = np.frombuffer(data, np.uint8).copy()
            at = rng.integers(0, len(data), rng.integers(1, 30))
            changed[at] = rng.integers(0, 256, len(at))
            cut = rng.integers(0, len(data)) if rng.random() < 0.5 else len(data)
            tags, problems = tags_and_problems(photo(changed[:cut].tobytes()))
            assert all(isinstance(tag, str) and tag.strip() for tag in tags)
            assert all(problem.reason for problem in problems)


def test_hollow_xml_is_searched_in_time(photo):
    for piece in ("<dc:subject", "<rdf:li>", "<dc:subject><rdf:li", "<rdf:li "):
        path = photo(JPEG)
        photo(("<a>" + piece * 300_000 + ">").encode(), "photo.xmp")
        assert tags_and_problems(path)[0] == []


# --- IPTC and Windows ---


@pytest.mark.parametrize(
    ("words", "charset", "expected"),
    [
        (["Österreich".encode()], b"\x1b%G", ["Österreich"]),
        (["Österreich".encode()], None, ["Österreich"]),
        (["Österreich".encode("latin-1")], None, ["Österreich"]),
        (["Österreich".encode("latin-1")], b"\x1b%G", ["Österreich"]),
        (["Ã–".encode("cp1252")], b"\x1b.A", ["Ã–"]),
        ([b"dog", b"", b" dog ", b"\x81\x8d"], None, ["dog", "\x81\x8d"]),
        (["e\u0301".encode()], None, ["é"]),
        ([("x" * 63 + "é").encode()[:64], "日本語".encode()[:-1]], b"\x1b%G", ["x" * 63, "日本"]),
        ([("x" * 62 + "日").encode()[:64]], None, ["x" * 62]),
        ([("x" * 60 + "🐕").encode()[:63]], None, ["x" * 60]),
        (["café".encode("latin-1"), "Müllé".encode("latin-1")], None, ["café", "Müllé"]),
        ([("x" * 63 + "é").encode()[:64]], b"\x1b.A", ["x" * 63 + "Ã"]),
    ],
)
def test_iptc(words, charset, expected, photo):
    block = samples.iptc(*words, charset=charset)
    assert read_keywords(photo(samples.with_iptc(JPEG, block))) == expected
    for tag, value in ((33723, block), (34377, samples.photoshop(block))):
        info = Image.new("L", (2, 2))
        out = io.BytesIO()
        info.save(out, "TIFF", tiffinfo={tag: value})
        assert read_keywords(photo(out.getvalue(), "a.tif")) == expected


def test_iptc_in_turned_numbers_long_fields_and_two_segments(photo):
    block = samples.iptc(b"dog", b"sea")
    block += bytes(-len(block) % 4)
    turned = b"".join(block[i : i + 4][::-1] for i in range(0, len(block), 4))
    assert read_keywords(photo(saved(picture(), "TIFF", tiffinfo={33723: turned}))) == [
        "dog",
        "sea",
    ]
    long = b"\x1c\x02\x78\x80\x04" + struct.pack(">I", 70000) + b"x" * 70000 + samples.iptc(b"dog")
    resources = samples.photoshop(long)
    parts = [
        (0xED, b"Photoshop 3.0\0" + resources[at : at + 60000])
        for at in range(0, len(resources), 60000)
    ]
    assert len(parts) == 2
    assert read_keywords(photo(samples.with_segments(JPEG, *parts))) == ["dog"]


def test_a_keyword_that_iptc_cut_is_not_a_second_tag(photo):
    long = "a keyword that is rather longer than the sixty-four bytes that IPTC holds"
    data = samples.with_iptc(JPEG, samples.iptc(long[:64].encode(), b"a keyword", b"\xc3\xbc" * 32))
    path = photo(samples.with_xmp(data, samples.subjects(long, "ü" * 40)))
    assert read_keywords(path) == [long, "ü" * 40, "a keyword"]
    for n in (1, 2, 3):  # bytes of the last character that are left
        long = "x" * (64 - n) + "🐕 and more"
        data = samples.with_iptc(JPEG, samples.iptc(long.encode()[:64]))
        assert read_keywords(photo(samples.with_xmp(data, samples.subjects(long)))) == [long]


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_windows_keywords(form, photo):
    exif = Image.Exif()
    exif[0x9C9E] = "dog; 日本;;dog\0".encode("utf-16-le")
    assert read_keywords(photo(saved(picture(), form, exif=exif))) == ["dog", "日本"]


def test_directories_of_tiff():
    entry = struct.pack(">HHQ8s", 700, 1, 3, b"abc\0\0\0\0\0")
    big = b"MM\0+\0\x08\0\0" + struct.pack(">QQ", 16, 1) + entry
    assert first_directory(big, {700}) == {700: b"abc"}
    small = b"II*\0\x08\0\0\0\x02\0" + struct.pack("<HHI4s", 700, 1, 4, b"abcd")
    assert first_directory(small, {700}) == {700: b"abcd"}  # though the second entry is missing
    assert first_directory(small, {701}) == {}
    for wrong in (b"", b"II*\0", b"XX*\0\x08\0\0\0", b"II*\0\xff\xff\xff\xff", big[:30]):
        assert first_directory(wrong, {700}) == {}


def test_a_directory_that_points_out_of_the_file(photo):
    """Real files, not only bytes: they refuse to go where no file can be."""
    outside = b"\xff" * 7 + b"\x7f"
    entry = struct.pack("<HHQ8s", 700, 1, 99, outside)
    for order, data in (
        ("directory", b"II+\0\x08\0\0\0" + outside),
        ("value", b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, 1) + entry),
        ("entries", b"II+\0\x08\0\0\0" + struct.pack("<Q", 16) + outside + entry),
    ):
        assert tags_and_problems(photo(data, f"{order}.tif")) == ([], [])


def test_keywords_in_raw_files(photo):
    data = dng(np.zeros((64, 96), np.uint16), xmp=samples.subjects("dog").encode())
    path = photo(data, "photo.dng")
    assert tags_and_problems(path) == (["dog"], [])
    photo(samples.subjects("cat").encode(), "photo.dng.xmp")
    photo(samples.subjects("sea").encode(), "photo.xmp")
    assert read_keywords(path) == ["dog", "cat", "sea"]


# --- against exiftool ---


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "WEBP", "GIF", "PSD", "JP2"])
def test_what_exiftool_writes_is_read(form, photo, exiftool):
    pixels = picture()
    data = psd(pixels) if form == "PSD" else saved(pixels, form.replace("JP2", "JPEG2000"))
    path = photo(data, f"photo.{form.lower()}")
    words = ["dog", "Österreich", "R&B <x>", "日本"]
    options = [f"-XMP-dc:Subject={word}" for word in words]
    options += ["-XMP-lr:HierarchicalSubject=animal|dog"]
    options += ["-XPKeywords=windows;dog"] if form != "GIF" else []  # which has no EXIF
    has_iptc = form in ("JPEG", "PNG", "TIFF", "PSD", "JP2")
    if has_iptc:
        options += ["-IPTC:CodedCharacterSet=UTF8", "-IPTC:Keywords=iptc é", "-IPTC:Keywords=dog"]
    exiftool("-overwrite_original", "-charset", "iptc=utf8", *options, path)
    expected = ["animal|dog", *words[1:]] + (["windows"] if form != "GIF" else [])
    expected += ["iptc é"] if has_iptc else []
    assert tags_and_problems(path) == (expected, [])
    assert decode(path.read_bytes()).shape == (32, 48, 3)


@pytest.mark.parametrize(("xmp", "tags"), PROGRAMS)
@pytest.mark.parametrize("form", ["JPEG", "PNG compressed", "TIFF", "WEBP", "GIF", "PSD"])
def test_what_is_read_is_what_exiftool_reads(form, xmp, tags, photo, exiftool):
    path = photo(in_format(form, xmp), f"photo.{form.split()[0].lower()}")
    keywords = json.loads(exiftool("-j", "-XMP:Subject", "-XMP:HierarchicalSubject", path))[0]
    keywords = keywords.get("Subject", []) + keywords.get("HierarchicalSubject", [])
    leaves = {tag.rsplit("|", 1)[-1] for tag in tags}
    assert leaves <= {word.rsplit("|", 1)[-1] for word in keywords}
    ours = set(tags) | leaves
    assert {
        word for word in keywords if word.split("|")[0] not in ("darktable", "exported")
    } <= ours
