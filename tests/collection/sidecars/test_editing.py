"""Tags in the text of sidecars: every program's form, and only what may change changes."""

from unicodedata import normalize

import pytest
from lxml import etree

from tagkin.collection.sidecars import (
    Provenance,
    WrittenTag,
    drop_tags,
    provenance_of,
    put_back_values,
    tags_of,
    with_tags,
    without_tags,
)
from tagkin.collection.xmp import decode, read_packet
from tagkin.errors import InvalidInput, SidecarError
from tests.collection.sidecars.forms import PROGRAMS
from tests.collection.xmp_samples import NAMESPACES, packet, subjects

RUN = Provenance("12", {"sea": 0.93, "nature|tree": 0.5})
DIGIKAMS = "MicrosoftPhoto:LastKeywordXMP"  # only where it is already
OURS = ("dc:subject", "lr:hierarchicalSubject", "digiKam:TagsList", "tagkin:Written")
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"


def field(xml, name):
    """The items of a property, by XPath."""
    prefix = {
        "dc": "http://purl.org/dc/elements/1.1/",
        "lr": "http://ns.adobe.com/lightroom/1.0/",
        "digiKam": "http://www.digikam.org/ns/1.0/",
        "rdf": RDF[1:-1],
    }
    items = etree.fromstring(xml).xpath(f"//rdf:Description/{name}//rdf:li", namespaces=prefix)
    return [item.text for item in items]


# --- the programs ---


@pytest.mark.parametrize("form", [form for form in PROGRAMS if tags_of(PROGRAMS[form])])
def test_tags_are_removed_and_put_back_and_everything_else_stays(form):
    before = PROGRAMS[form]
    tags = tags_of(before)
    for tag in tags:
        after, removed = drop_tags(before, [tag])  # it checks that the rest stays
        assert set(tags_of(after)) == set(tags) - {tag}
        assert drop_tags(after, [tag]) == (after, ())
        assert set(tags_of(put_back_values(after, removed, before))) == set(tags)
    assert drop_tags(before, ["not there"]) == (before, ())


def test_a_level_that_another_tag_ends_in_stays_where_a_tag_is_removed():
    xml, _ = with_tags(None, ["animal|dog", "toy|dog"], RUN)
    after, _ = drop_tags(xml, ["animal|dog"])
    assert field(after, "dc:subject") == ["dog"]
    assert tags_of(after) == ["toy|dog"]
    assert [record.tag for record in provenance_of(after)] == ["toy|dog"]


@pytest.mark.parametrize("form", PROGRAMS)
def test_tags_are_added_and_everything_else_stays(form):
    before = PROGRAMS[form]
    after, added = with_tags(before, ["nature|tree", "sea", "海", "شاطئ", "🐕"], RUN)
    assert set(tags_of(after)) == {*tags_of(before), "nature|tree", "sea", "海", "شاطئ", "🐕"}
    assert read_packet(after).problem is None
    assert field(after, "dc:subject")[-5:] == ["tree", "sea", "海", "شاطئ", "🐕"]
    assert field(after, "lr:hierarchicalSubject")[-5:] == ["nature|tree", "sea", "海", "شاطئ", "🐕"]
    assert field(after, "digiKam:TagsList")[-5:] == ["nature/tree", "sea", "海", "شاطئ", "🐕"]
    assert [w.tag for w in provenance_of(after)] == ["nature|tree", "sea", "海", "شاطئ", "🐕"]
    assert WrittenTag("sea", "12", 0.93) in provenance_of(after)
    assert {name for name, _ in added} - {DIGIKAMS} == set(OURS)
    assert (DIGIKAMS in dict(added)) == (form in ("digikam", "utf-16"))


@pytest.mark.parametrize("form", [form for form in PROGRAMS if form != "attributes"])
def test_what_was_added_can_be_taken_out(form):
    """New lists keep the tags that were there before: the mark does not name them."""
    before = PROGRAMS[form]
    after, added = with_tags(before, ["nature|tree", "sea"], RUN)
    back = without_tags(after, added, RUN.mark)
    assert set(tags_of(back)) == set(tags_of(before))
    assert provenance_of(back) == []
    assert without_tags(after, added, "another") == after


@pytest.mark.parametrize("form", PROGRAMS)
def test_lines_that_were_there_are_there_in_their_order(form):
    before, after = PROGRAMS[form], with_tags(PROGRAMS[form], ["sea"], RUN)[0]
    before = decode(before)[0].encode() if form == "utf-16" else before
    if form == "attributes":
        before = before.replace(b'"2"/>', b'"2">')
    lines = iter(after.splitlines(keepends=True))
    assert all(line in lines for line in before.splitlines(keepends=True))


@pytest.mark.parametrize("form", PROGRAMS)
def test_a_second_time_changes_nothing(form):
    after, _ = with_tags(PROGRAMS[form], ["nature|tree", "sea"], RUN)
    assert with_tags(after, ["sea", "nature|tree", "tree", " sea "], RUN) == (after, ())
    assert with_tags(PROGRAMS[form], [], RUN) == (PROGRAMS[form], ())


def test_a_new_sidecar():
    xml, added = with_tags(None, ["animal|dog", "R&B <x>", "AC \"DC\" 'x'"], RUN)
    assert tags_of(xml) == ["animal|dog", "R&B <x>", "AC \"DC\" 'x'"]
    assert [record.run for record in provenance_of(xml)] == ["12"] * 3
    assert xml.endswith(b"</x:xmpmeta>\n")
    assert with_tags(None, [], RUN) == (b"", ())
    assert without_tags(xml, added, RUN.mark).count(b"rdf:li") == 0


def test_indentation_follows_the_file():
    after = with_tags(PROGRAMS["attributes"], ["sea"], None)[0].decode()
    assert (
        '\n\t\t\t<dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/">\n\t\t\t\t<rdf:Bag>'
        "\n\t\t\t\t\t<rdf:li>sea</rdf:li>\n\t\t\t\t</rdf:Bag>\n\t\t\t</dc:subject>\n\t\t"
        "</rdf:Description>\n\t</rdf:RDF>"
    ) in after
    on_one_line = subjects("dog").encode()
    assert b"\n" not in with_tags(on_one_line, ["sea"], RUN)[0]
    crlf = with_tags(PROGRAMS["windows line ends"], ["sea"], RUN)[0]
    assert crlf.count(b"\n") == crlf.count(b"\r\n") > PROGRAMS["windows line ends"].count(b"\n")
    assert crlf.startswith(b"\xef\xbb\xbf")


# --- what a list that is made has to hold ---


def test_every_list_holds_all_tags():
    """digiKam and Immich look at one list and no further."""
    xml, added = with_tags(
        subjects("dog", "red").encode(), ["sea"], RUN, known=["inside", "dog", "red"]
    )
    assert field(xml, "dc:subject") == ["dog", "red", "inside", "sea"]
    assert field(xml, "lr:hierarchicalSubject") == ["inside", "dog", "red", "sea"]
    assert field(xml, "digiKam:TagsList") == ["inside", "dog", "red", "sea"]
    assert [record.tag for record in provenance_of(xml)] == ["sea"]
    back = without_tags(xml, added, RUN.mark)
    assert field(back, "dc:subject") == ["dog", "red", "inside"]
    assert field(back, "digiKam:TagsList") == ["inside", "dog", "red"]


def test_a_list_that_is_made_repeats_decomposed_letters():
    """Otherwise other programs show é and é as two tags."""
    cafe, oland = (normalize("NFD", word) for word in ("café", "Öland"))
    before = subjects(cafe).encode()
    xml, added = with_tags(before, ["sea", "hôtel"], RUN, known=[oland, cafe])
    assert field(xml, "dc:subject") == [cafe, oland, "sea", "hôtel"]
    assert field(xml, "lr:hierarchicalSubject") == [oland, cafe, "sea", "hôtel"]
    assert field(xml, "digiKam:TagsList") == [oland, cafe, "sea", "hôtel"]
    assert tags_of(xml) == ["Öland", "café", "sea", "hôtel"]
    assert field(without_tags(xml, added, RUN.mark), "digiKam:TagsList") == [oland, cafe]
    left, removed = drop_tags(xml, ["café"])
    assert set(field(put_back_values(left, removed, xml), "dc:subject")) == {
        cafe,
        oland,
        "sea",
        "hôtel",
    }


@pytest.mark.parametrize("before", [None, PROGRAMS["digikam"]])
def test_tags_with_a_slash_in_digikams_list(before):
    """There / is between levels, and Immich writes | for it; Immich reads this list alone."""
    tags = ["music|AC/DC", "24 / 7", "sea"]
    xml, added = with_tags(before, tags, RUN)
    assert field(xml, "digiKam:TagsList")[-3:] == ["music/AC|DC", "24 | 7", "sea"]
    assert set(tags) == set(tags_of(xml)) - {"animal|dog"}
    assert with_tags(xml, tags, RUN) == (xml, ())
    without, removed = drop_tags(xml, ["24 / 7"])
    assert field(without, "digiKam:TagsList")[-2:] == ["music/AC|DC", "sea"]
    assert "24 / 7" not in field(without, "dc:subject")
    assert sorted(tags_of(put_back_values(without, removed, xml))) == sorted(tags_of(xml))
    undone = without_tags(xml, added, RUN.mark)
    assert tags_of(undone) == (tags_of(before) if before else [])


def test_levels_both_ways():
    in_digikams = packet(
        "<digiKam:TagsList><rdf:Seq><rdf:li>animal/dog</rdf:li></rdf:Seq></digiKam:TagsList>"
    ).encode()
    xml, _ = with_tags(in_digikams, ["place|Wien"], RUN)
    assert field(xml, "lr:hierarchicalSubject") == ["animal|dog", "place|Wien"]
    assert field(xml, "digiKam:TagsList") == ["animal/dog", "place/Wien"]
    assert field(xml, "dc:subject") == ["dog", "Wien"]
    assert with_tags(xml, ["dog"], RUN) == (xml, ())  # it is said already
    more, _ = with_tags(xml, ["friends|dog"], RUN)
    assert field(more, "dc:subject") == ["dog", "Wien"]
    assert field(more, "lr:hierarchicalSubject")[-1] == "friends|dog"


# --- forms of RDF ---

ITEM = "<rdf:li>dog</rdf:li>"
LEVELS = "<lr:hierarchicalSubject>dog</lr:hierarchicalSubject>"
QUALIFIED = "<dc:subject rdf:parseType='Resource'><rdf:value>dog</rdf:value></dc:subject>"


@pytest.mark.parametrize(
    ("xml", "kind"),
    [
        (packet(f"<dc:subject><rdf:Bag>{ITEM}</rdf:Bag></dc:subject>"), "Bag"),
        (packet(f"<dc:subject><rdf:Seq>{ITEM}</rdf:Seq></dc:subject>"), "Seq"),
        (packet(f"<dc:subject><rdf:Alt>{ITEM}</rdf:Alt></dc:subject>"), "Alt"),
        (packet(f"<dc:subject><rdf:Bag>{ITEM}<!-- c --></rdf:Bag></dc:subject>"), "Bag"),
        (packet("<dc:subject>dog</dc:subject>"), "Bag"),
        (packet("<dc:subject>d<!-- c -->og</dc:subject>"), "Bag"),
        (packet("<dc:subject/><dc:subject>dog</dc:subject>"), "Bag"),
        (packet(f"<dc:subject></dc:subject>{LEVELS}"), "Bag"),
        (packet(f"{LEVELS}<dc:subject> </dc:subject>"), "Bag"),
        (packet("<dc:subject><rdf:Seq/></dc:subject>"), "Seq"),
        (packet("<dc:subject><rdf:Seq>\n </rdf:Seq></dc:subject>"), "Seq"),
        (packet("<a:b xmlns:a='urn:a'/>").replace('rdf:about=""', "dc:subject='dog'"), "Bag"),
        (f"<rdf:RDF {NAMESPACES}><rdf:Description\n dc:subject = \"dog\"\n/></rdf:RDF>", "Bag"),
        (f"<r:RDF {NAMESPACES.replace('rdf=', 'r=')}><r:Description r:about=''><dc:subject><r:Bag>"
         "<r:li>dog</r:li></r:Bag></dc:subject></r:Description></r:RDF>", "Bag"),
        (f"<RDF {NAMESPACES.replace(':rdf=', '=')}><Description><dc:subject><Bag><li>dog</li></Bag>"
         "</dc:subject></Description></RDF>", "Bag"),
        (f"<RDF {NAMESPACES.replace(':rdf=', '=')}/>", "Bag"),
        (f"<RDF {NAMESPACES.replace(':rdf=', '=')}>\n</RDF>", "Bag"),
        (f"<rdf:RDF {NAMESPACES} xmlns:tagkin='urn:other' tagkin:a='1'/>", "Bag"),
    ],
)  # fmt: skip
def test_forms(xml, kind):
    before = xml.encode()
    after, added = with_tags(before, ["sea"], RUN)
    tree = etree.fromstring(after)
    (container,) = tree.findall(f".//{RDF}Description/{{*}}subject/{RDF}{kind}")
    expected = [*tags_of(before), "sea"]
    assert expected == (["dog", "sea"] if "og<" in xml or "dog" in xml else ["sea"])
    assert tags_of(after) == expected
    assert [item.text for item in container.findall(f"{RDF}li")][-1] == "sea"
    assert provenance_of(after) == [WrittenTag("sea", "12", 0.93)]
    assert tags_of(without_tags(after, added, RUN.mark)) == expected[:-1]
    assert after.count(b"<!-- c -->") == before.count(b"<!-- c -->")


MANY_ATTRIBUTES = packet("<dc:x " + " ".join(f'dc:a{i}="x"' for i in range(6_000)) + "/>")


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        ("", "not well-formed"),
        ("text", "not well-formed"),
        (subjects("dog")[:-20], "not well-formed"),
        (subjects("dog") + "\0", "not well-formed"),
        (subjects("d&nbsp;og"), "not well-formed"),
        ("<html><body/></html>", "has no rdf:RDF"),
        (f"<html>{subjects('dog')}</html>", "inside <html>, where no program reads it"),
        ("<!-- a -->" + subjects("dog"), "begins with a comment, so no program reads it"),
        ("\n<?php ?>" + subjects("dog"), "begins with a comment, so no program reads it"),
        ("<!DOCTYPE x>" + subjects("dog"), "has a document type and was not read"),
        (MANY_ATTRIBUTES, "more than 5,000 attributes and was not read"),
        ("<!-- --><!DOCTYPE x [<!ENTITY a 'b'>]>" + subjects("&a;"), "declares entities"),
        ("<a>" * 3000 + "</a>" * 3000, "depth"),
        ('<?xml version="1.0" encoding="x-other"?><a/>', "encoding x-other"),
        (packet(QUALIFIED), "dc:subject is not a list"),
        (packet("<dc:subject rdf:resource='urn:x'/>"), "dc:subject is not a list"),
    ],
)
def test_what_is_not_xmp_is_refused(xml, reason):
    with pytest.raises(SidecarError, match=reason):
        with_tags(xml.encode(), ["sea"], RUN)
    if not any(said in reason for said in ("not a list", "rdf:RDF", "no program")):
        with pytest.raises(SidecarError, match=reason):
            without_tags(xml.encode(), [("dc:subject", "sea")], RUN.mark)


def test_a_sidecar_in_another_encoding_becomes_utf_8():
    """exiftool and exiv2 do not read other encodings as declared."""
    xml = '<?xml version="1.0" encoding="{}"?>' + subjects("Österreich")
    for encoding in ("ISO-8859-1", "windows-1252"):
        after, added = with_tags(xml.format(encoding).encode(encoding), ["Süden", "海"], RUN)
        assert after.startswith(b'<?xml version="1.0" encoding="UTF-8"?>')
        assert tags_of(after) == ["Österreich", "Süden", "海"]
        assert tags_of(without_tags(after, added, RUN.mark)) == ["Österreich"]
    with pytest.raises(SidecarError, match="byte 491 is not UTF-8"):
        with_tags(subjects("Österreich").encode("latin-1"), ["sea"], RUN)


def test_utf_8_that_declares_another_encoding_is_read_as_utf_8():
    xml = '<?xml version="1.0" encoding="ISO-8859-1"?>' + subjects("Österreich")
    assert tags_of(xml.encode()) == ["Österreich"]
    after, _ = with_tags(xml.encode(), ["sea"], RUN)
    assert tags_of(after) == ["Österreich", "sea"]


def repeated(*properties):
    """A packet in which several descriptions hold properties."""
    inside = "".join(f'<rdf:Description rdf:about="">{p}</rdf:Description>' for p in properties)
    return (
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF {NAMESPACES}>{inside}</rdf:RDF></x:xmpmeta>'
    )


LISTS = "<dc:subject><rdf:Bag>{}</rdf:Bag></dc:subject>"


@pytest.mark.parametrize("tag", ["sea", "animal|dog"])
def test_a_property_in_several_descriptions_becomes_one_list(tag):
    xml = repeated(
        LISTS.format("<rdf:li>dog</rdf:li><rdf:li>R&amp;B</rdf:li>"),
        "<dc:subject>cat</dc:subject><xmp:Rating>3</xmp:Rating>",
        LISTS.format("<rdf:li>bird</rdf:li><rdf:li>dog</rdf:li>"),
    ).replace("<xmp:Rating>", "<xmp:Rating xmlns:xmp='http://ns.adobe.com/xap/1.0/'>")
    after, added = with_tags(xml.encode(), [tag], RUN)
    assert after.count(b"<dc:subject>") == 1
    words = ["dog", "R&B", "cat", "bird"]
    assert field(after, "dc:subject") == [*words, *(["sea"] if tag == "sea" else [])]
    assert b">3</xmp:Rating>" in after
    assert set(tags_of(without_tags(after, added, RUN.mark))) == set(words)


def test_a_repeated_property_with_comments_stays():
    xml = repeated(
        LISTS.format("<rdf:li>dog</rdf:li>"), LISTS.format("<!-- mine --><rdf:li>cat</rdf:li>")
    )
    after, added = with_tags(xml.encode(), ["sea"], RUN)
    assert b"<!-- mine --><rdf:li>cat</rdf:li>" in after
    back = without_tags(after, added, RUN.mark)
    assert b"<!-- mine --><rdf:li>cat</rdf:li>" in back
    assert set(tags_of(back)) == {"dog", "cat"}


def test_entities_are_never_resolved(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    xml = f'<!DOCTYPE x [<!ENTITY f SYSTEM "{secret.as_uri()}">]>' + subjects("&f;")
    with pytest.raises(SidecarError, match="declares entities"):
        tags_of(xml.encode())


@pytest.mark.parametrize("tag", ["", " | ", "a\x01b", "\ud800", "a\uffff"])
def test_tags_that_cannot_be_written(tag):
    with pytest.raises(InvalidInput, match="The tag"):
        with_tags(None, [tag], RUN)


# --- taken out again ---


def test_only_what_was_added_is_taken_out():
    after, added = with_tags(PROGRAMS["lightroom"], ["sea", "nature|tree"], RUN)
    by_another = after.replace(b"<rdf:li>dog</rdf:li>", b"<rdf:li>dog</rdf:li><rdf:li>cat</rdf:li>")
    by_another = by_another.replace(b'Rating="4"', b'Rating="5"')
    cleaned = without_tags(by_another, added, RUN.mark)
    assert set(tags_of(cleaned)) == {*tags_of(PROGRAMS["lightroom"]), "cat"}
    assert b'Rating="5"' in cleaned
    assert without_tags(cleaned, added, RUN.mark) == cleaned


def test_a_level_that_another_tag_ends_in_stays():
    after, added = with_tags(PROGRAMS["exiftool"], ["nature|tree"], RUN)
    another = after.replace(
        b"<rdf:li>nature|tree</rdf:li>", b"<rdf:li>nature|tree</rdf:li><rdf:li>garden|tree</rdf:li>"
    )
    assert set(tags_of(without_tags(another, added, RUN.mark))) == {"dog", "garden|tree"}
    assert field(without_tags(another, added, RUN.mark), "dc:subject") == ["dog", "tree"]


def test_what_another_program_wrote_in_its_own_way():
    """Structures in their long form, tags as an attribute, comments in a list."""
    xml = packet(
        "<lr:hierarchicalSubject><rdf:Bag><!-- mine --><rdf:li>sea</rdf:li></rdf:Bag>"
        "</lr:hierarchicalSubject>"
        "<t:Written xmlns:t='tagkin:ns/1.0/'><rdf:Bag><rdf:li rdf:parseType='Resource'>"
        "<t:Tag>sea</t:Tag><t:Run>12</t:Run><t:Confidence>high</t:Confidence></rdf:li>"
        "</rdf:Bag></t:Written>"
    ).replace('about=""', 'about="" dc:subject="sea"')
    assert provenance_of(xml.encode()) == [WrittenTag("sea", "12", None)]
    added = [("lr:hierarchicalSubject", "sea"), ("dc:subject", "sea"), ("tagkin:Written", "sea")]
    cleaned = without_tags(xml.encode(), added, RUN.mark)
    assert tags_of(cleaned) == []
    assert provenance_of(cleaned) == []
    assert b"<!-- mine -->" in cleaned
