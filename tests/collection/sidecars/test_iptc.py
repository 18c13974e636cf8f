"""IPTC keywords inside photographs stay in step with the tags that are embedded."""

import json

import pytest

from tagkin.collection import read_keywords
from tagkin.collection.sidecars import ExifTool, restore_embedded
from tests.collection.sidecars.wrapped_exiftool import embed, needs_exiftool
from tests.images.synthetic import picture, saved

pytestmark = needs_exiftool
TAGS = ["place|Zürich", "海", "sea"]
ENDS = ["Zürich", "海", "sea"]
FORMS = {  # how photographs come to have IPTC
    "utf-8": ["-IPTC:CodedCharacterSet=UTF8", "-IPTC:Keywords=Köln", "-IPTC:City=Genève"],
    "utf-8, undeclared": ["-charset", "iptc=UTF8", "-IPTC:Keywords=Köln", "-IPTC:City=Genève"],
    "latin": ["-IPTC:Keywords=Köln", "-IPTC:City=Genève"],
    "ascii": ["-IPTC:Keywords=Köln".replace("ö", "o"), "-IPTC:City=Geneva"],
}


@pytest.fixture(scope="module")
def exiftool():
    with ExifTool() as tool:
        yield tool


@pytest.fixture
def photo(tmp_path, exiftool):
    """A photograph that exiftool wrote something into."""

    def made(*arguments, form="JPEG"):
        path = tmp_path / f"img.{form.lower()}"
        path.write_bytes(saved(picture(), form))
        if arguments:
            exiftool.run(*arguments, "-overwrite_original", str(path))
        return path

    return made


def iptc(exiftool, path, *options):
    """All of IPTC as exiftool reads it, and whether the digest is that of what is there."""
    names = ("-IPTC:all", "-Photoshop:IPTCDigest", "-File:CurrentIPTCDigest")
    (fields,) = json.loads(exiftool.run("-j", *options, *names, str(path)))
    words = fields.get("Keywords", [])
    fields["Keywords"] = words if isinstance(words, list) else [words]
    return fields


@pytest.mark.parametrize("form", FORMS)
def test_keywords_get_the_tags_whatever_their_encoding(form, photo, exiftool):
    path = photo(*FORMS[form])
    before, status = path.read_bytes(), path.stat()
    city, word = ("Geneva", "Koln") if form == "ascii" else ("Genève", "Köln")
    written = embed(path, TAGS, exiftool, known=[word])
    fields = iptc(exiftool, path)
    assert (fields["Keywords"], fields["City"]) == ([word, *ENDS], city)
    assert set(read_keywords(path)) == {word, *TAGS}
    assert restore_embedded(written, exiftool).how == "restored"
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, status.st_mtime_ns)


@pytest.mark.parametrize("form", FORMS)
def test_only_our_keywords_go_if_somebody_wrote_since(form, photo, exiftool):
    path = photo(*FORMS[form])
    words = iptc(exiftool, path)["Keywords"]
    written = embed(path, ["sea", "Süden"], exiftool)
    exiftool.run(
        "-IPTC:Keywords+=theirs", "-XMP-dc:Subject+=theirs", "-overwrite_original", str(path)
    )
    assert restore_embedded(written, exiftool).how == "untagged"
    assert "theirs" in iptc(exiftool, path)["Keywords"]
    assert not {"sea", "Süden"} & set(iptc(exiftool, path)["Keywords"])
    assert set(read_keywords(path)) == {"theirs", "Koln" if form == "ascii" else "Köln"}
    assert len(iptc(exiftool, path)["Keywords"]) == len(words) + 1


def test_latin_stays_latin_if_it_can(photo, exiftool):
    path = photo(*FORMS["latin"])
    embed(path, ["Zürich"], exiftool)
    fields = iptc(exiftool, path)
    assert fields["Keywords"] == ["Köln", "Zürich"]
    assert "CodedCharacterSet" not in fields


@pytest.mark.parametrize("form", ["JPEG", "TIFF"])
def test_a_photograph_without_iptc_keywords_gets_none(form, photo, exiftool):
    path = photo("-IPTC:City=Wien", form=form)
    embed(path, ["sea"], exiftool)
    assert iptc(exiftool, path)["Keywords"] == []
    assert read_keywords(path) == ["sea"]


@pytest.mark.parametrize("is_in_step", [True, False])
def test_the_digest_tells_what_it_told_before(is_in_step, photo, exiftool):
    """It says whether IPTC or XMP is the newer one."""
    path = photo("-IPTC:Keywords=dog", "-IPTCDigest=new")
    if not is_in_step:
        exiftool.run("-IPTC:City=Wien", "-overwrite_original", str(path))
    written = embed(path, ["sea"], exiftool)
    fields = iptc(exiftool, path)
    assert fields["Keywords"] == ["dog", "sea"]
    assert (fields["IPTCDigest"] == fields["CurrentIPTCDigest"]) is is_in_step
    exiftool.run("-XMP:Rating=3", "-overwrite_original", str(path))
    assert restore_embedded(written, exiftool).how == "untagged"
    fields = iptc(exiftool, path)
    assert fields["Keywords"] == ["dog"]
    assert (fields["IPTCDigest"] == fields["CurrentIPTCDigest"]) is is_in_step


def test_long_tags_are_cut_as_iptc_has_it(photo, exiftool):
    path = photo(*FORMS["utf-8"])
    tag = "x" + "ü" * 60
    written = embed(path, [tag], exiftool)
    assert iptc(exiftool, path)["Keywords"] == ["Köln", "x" + "ü" * 31]
    assert set(read_keywords(path)) == {tag, "Köln"}
    exiftool.run("-XMP:Rating=3", "-overwrite_original", str(path))
    restore_embedded(written, exiftool)
    assert read_keywords(path) == ["Köln"]


def test_a_level_that_another_tag_ends_in_stays(photo, exiftool):
    path = photo("-IPTC:Keywords=dog", "-XMP-dc:Subject=dog")
    written = embed(path, ["nature|tree"], exiftool)
    exiftool.run("-XMP-lr:HierarchicalSubject+=garden|tree", "-overwrite_original", str(path))
    restore_embedded(written, exiftool)
    assert iptc(exiftool, path)["Keywords"] == ["dog", "tree"]


@pytest.mark.parametrize("tag", ["true", "FALSE", "007", "1e5", "null"])
def test_words_that_json_has_another_meaning_for(tag, photo, exiftool):
    path = photo("-IPTC:Keywords=1E6")
    written = embed(path, [tag], exiftool)
    assert set(read_keywords(path)) == {"1E6", tag}
    assert embed(path, [tag], exiftool).added == ()
    assert restore_embedded(written, exiftool).how == "restored"
