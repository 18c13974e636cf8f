"""Generated sidecars: whatever is in them, everything but the tags stays, and lxml is the judge."""

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tagkin.collection.levels import last_level
from tagkin.collection.sidecars import Provenance, provenance_of, tags_of, with_tags, without_tags
from tagkin.collection.sidecars.tag_fields import has_tag

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NAMESPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "lr": "http://ns.adobe.com/lightroom/1.0/",
    "digiKam": "http://www.digikam.org/ns/1.0/",
    "tagkin": "tagkin:ns/1.0/",
}
OURS = {
    f"{{{NAMESPACES[prefix]}}}{name}"
    for prefix, name in (
        ("dc", "subject"),
        ("lr", "hierarchicalSubject"),
        ("digiKam", "TagsList"),
        ("tagkin", "Written"),
    )
}
FAST = settings(max_examples=100, deadline=None, derandomize=True)

# --- what sidecars may hold ---

LETTERS = st.text("abÖ海ع🐕 &<>\"'|/;,é-", min_size=1, max_size=8)
LEVEL = LETTERS.map(lambda text: text.replace("|", "").strip()).filter(bool)
TAG = st.lists(LEVEL, min_size=1, max_size=3).map("|".join)
TEXT = st.text("ab 海<&>'\"\t", max_size=6)
COMMENT = st.text("ab <&>", max_size=5).map(lambda text: f"<!--{text}-->")
INSTRUCTION = st.just("<?other do='it'?>")
RUN = Provenance("7")


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quoted(text):
    return '"' + escaped(text).replace('"', "&quot;").replace("\t", "&#9;") + '"'


@st.composite
def foreign(draw, depth=0):
    """A property of somebody else: text, list, structure, or with our names deep inside."""
    name = draw(st.sampled_from(["a:one", "a:two", "b:One", "dc:title", "dc:creator"]))
    kind = draw(st.sampled_from(["text", "empty", "list", "resource", "cdata", "regions"]))
    if kind == "text":
        return f"<{name}>{escaped(draw(TEXT))}</{name}>"
    if kind == "empty":
        return f"<{name} rdf:resource={quoted(draw(TEXT))} />"
    if kind == "cdata":
        return f"<{name}><![CDATA[<dc:subject>&<rdf:li>]]></{name}>"
    if kind == "list":
        items = draw(st.lists(TEXT, max_size=3))
        inside = "".join(f"<rdf:li a:q={quoted(t)}>{escaped(t)}</rdf:li>" for t in items)
        return f"<{name}><rdf:Alt>{inside}</rdf:Alt></{name}>"
    if kind == "regions":
        return (
            f"<{name} rdf:parseType='Resource'><dc:subject><rdf:Bag><rdf:li>nose</rdf:li>"
            f"</rdf:Bag></dc:subject></{name}>"
        )
    inside = draw(foreign(depth + 1)) if depth < 2 else ""
    return f"<{name} rdf:parseType='Resource'>{inside}<b:x>{escaped(draw(TEXT))}</b:x></{name}>"


@st.composite
def keywords(draw, name, separator):
    """One of the properties of keywords, in any of its forms."""
    tags = [tag.replace("|", separator) for tag in draw(st.lists(TAG, max_size=3))]
    kind = draw(st.sampled_from(["Bag", "Seq", "Alt"]))
    blank = draw(st.sampled_from(["", "\n    ", " <!-- c --> "]))
    items = "".join(f"{blank}<rdf:li>{escaped(tag)}</rdf:li>" for tag in tags)
    forms = [
        f"<{name}>{blank}<rdf:{kind}>{items}</rdf:{kind}>{blank}</{name}>",
        f"<{name}>{escaped(tags[0])}</{name}>" if tags else f"<{name}/>",
        f"<{name}\n><rdf:{kind}/></{name} >",
    ]
    return draw(st.sampled_from(forms))


PROPERTIES = {
    "dc:subject": keywords("dc:subject", "|"),
    "lr:hierarchicalSubject": keywords("lr:hierarchicalSubject", "|"),
    "digiKam:TagsList": keywords("digiKam:TagsList", "/"),
}


@st.composite
def sidecars(draw):
    """A well-formed sidecar in some encoding and layout."""
    line = draw(st.sampled_from(["", "\n", "\r\n", "\n\t", "\n   "]))
    between = st.one_of(st.just(""), COMMENT, INSTRUCTION)
    blocks, ours = [], draw(st.sets(st.sampled_from(sorted(PROPERTIES))))
    n_blocks = draw(st.integers(0, 3))
    for i in range(n_blocks):
        inside = [draw(st.one_of(foreign(), between)) for _ in range(draw(st.integers(0, 3)))]
        attributes = draw(st.sampled_from(["", " a:flag='1'", f'{line} a:flag = "a > b"']))
        if i == n_blocks - 1:
            chosen = sorted(ours)
            if chosen and draw(st.booleans()):
                attributes += f" {chosen.pop()}={quoted(draw(TAG))}"
            inside += [draw(PROPERTIES[name]) for name in chosen]
        inside = draw(st.permutations(inside))
        if inside:
            body = "".join(f"{line}  {piece}" for piece in inside)
            block = f"<rdf:Description rdf:about=''{attributes}>{body}{line} </rdf:Description>"
        else:
            block = f"<rdf:Description rdf:about=''{attributes} />"
        blocks += [draw(between), block]
    known = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    known += f' xmlns:rdf="{RDF}" xmlns:a="urn:a" xmlns:b="urn:b:"'
    rdf = f"<rdf:RDF {known}>{''.join(line + ' ' + block for block in blocks)}{line}</rdf:RDF>"
    wrapped = f"<x:xmpmeta xmlns:x='adobe:ns:meta/'>{line}{rdf}{line}</x:xmpmeta>"
    text = draw(st.sampled_from([rdf, wrapped]))
    before = draw(
        st.sampled_from(
            ["", "<?xpacket begin='\ufeff'?>\n", "<?xpacket begin='\ufeff'?><!-- top -->"]
        )
    )
    after = draw(st.sampled_from(["", "\n\n", "\n<?xpacket end='w'?>"]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    return f"{before}{text}{after}".encode(encoding)


# --- the judge ---


def rest(xml):
    """Canonical XML of a sidecar without the four properties of its descriptions.

    Blanks between elements of RDF go too: they stand where elements are put in.
    """
    tree = etree.fromstring(xml).getroottree()  # with what stands before and after the root
    for rdf in tree.iter(f"{{{RDF}}}RDF"):
        for description in rdf.iterchildren(etree.Element):
            for name in OURS:
                description.attrib.pop(name, None)
                for element in description.findall(name):
                    element.tail = None
                    description.remove(element)
        for description in list(rdf.iterchildren(etree.Element)):
            for node in (description, *description):
                place = "text" if node is description else "tail"
                setattr(node, place, (getattr(node, place) or "").strip() or None)
            if len(description) == 0 and {*description.attrib} <= {f"{{{RDF}}}about"}:
                description.tail = None
                rdf.remove(description)
        for node in (rdf, *rdf):
            place = "text" if node is rdf else "tail"
            setattr(node, place, (getattr(node, place) or "").strip() or None)
    return etree.tostring(tree, method="c14n")


@FAST
@given(sidecars(), st.lists(TAG, min_size=1, max_size=3))
def test_everything_but_the_tags_stays(xml, tags):
    after, added = with_tags(xml, tags, RUN)
    assert rest(after) == rest(xml)
    had, has = tags_of(xml), tags_of(after)
    assert all(has_tag(has, tag) for tag in had)  # a leaf may now be part of a tag with levels
    assert all(has_tag(has, " ".join(tag.split())) for tag in clean(tags))
    assert set(has) <= {*had, *clean(tags)}
    assert with_tags(after, tags, RUN) == (after, ())
    assert bool(added) == (after != xml)


def clean(tags):
    """The tags in the one spelling that they are written in."""
    levels = ([" ".join(level.split()) for level in tag.split("|")] for tag in tags)
    return ["|".join(filter(None, parts)) for parts in levels]


@FAST
@given(sidecars(), st.lists(TAG, min_size=1, max_size=3))
def test_what_was_added_is_taken_out(xml, tags):
    after, added = with_tags(xml, tags, RUN)
    back = without_tags(after, added, RUN.mark)
    assert rest(back) == rest(xml)
    leaves = {last_level(tag) for tag in tags_of(after)}
    assert set(tags_of(back)) - leaves == set(tags_of(xml)) - leaves
    assert set(tags_of(xml)) <= {*tags_of(back), *leaves}
    assert not provenance_of(back)
    assert without_tags(back, added, RUN.mark) == back


@FAST
@given(sidecars(), st.lists(TAG, min_size=1, max_size=2), st.lists(TAG, max_size=2))
def test_what_was_there_is_a_part_of_what_is_there(xml, tags, known):
    """Character by character: nothing is written in another way."""
    after, added = with_tags(xml, tags, RUN, known=known)
    if not added:
        return
    encoding = "utf-16" if xml[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    old, new = xml.decode(encoding), iter(after.decode())
    if "/>" not in old and not any(f" {name}=" in old for name in PROPERTIES):
        assert all(character in new for character in old)
    if encoding == "utf-8":
        assert after[:3] == xml[:3]
