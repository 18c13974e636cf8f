"""Samples of XMP and IPTC, as written by common programs."""

import struct

NAMESPACES = (
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:lr="http://ns.adobe.com/lightroom/1.0/" '
    'xmlns:digiKam="http://www.digikam.org/ns/1.0/"'
)


def make_list(name: str, kind: str, *items: str) -> str:
    """Lay out an element with a list of items, escaped already, as most programs do."""
    lines = "".join(f"     <rdf:li>{item}</rdf:li>\n" for item in items)
    return f"   <{name}>\n    <rdf:{kind}>\n{lines}    </rdf:{kind}>\n   </{name}>\n"


LIGHTROOM = (
    f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="Adobe XMP Core 7.0-c000 1.000000, 0000/00/00-00:00:00">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
   xmp:Rating="4"
   dc:format="image/jpeg">
   <dc:title><rdf:Alt><rdf:li xml:lang="x-default">Not a tag</rdf:li></rdf:Alt></dc:title>
{make_list("dc:subject", "Bag", "dog", "Lake &amp; shore", "Österreich")}\
{make_list("lr:hierarchicalSubject", "Bag", "animal|dog", "Lake &amp; shore", "place|Österreich")}\
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"""
    + " " * 2000
    + '\n<?xpacket end="w"?>'
)
LIGHTROOM_TAGS = ["animal|dog", "place|Österreich", "Lake & shore"]

_IN_DIGIKAM = ("animal/dog", "_Digikam_Internal_Tags_/Color Label Red", "red")
DIGIKAM = f"""<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:digiKam="http://www.digikam.org/ns/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:acdsee="http://ns.acdsee.com/iptc/1.0/"
   acdsee:categories="&lt;Categories&gt;&lt;/Categories&gt;"
   digiKam:PickLabel="0">
{make_list("digiKam:TagsList", "Seq", *_IN_DIGIKAM)}\
   <dc:subject><rdf:Bag><rdf:li>dog</rdf:li><rdf:li>red</rdf:li></rdf:Bag></dc:subject>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>"""
DIGIKAM_TAGS = ["animal|dog", "red"]

DARKTABLE = f"""<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:darktable="http://darktable.sf.net/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
   darktable:xmp_version="5">
   <darktable:history>
    <rdf:Seq>
     <rdf:li darktable:num="0" darktable:operation="rawprepare" darktable:params="00"/>
    </rdf:Seq>
   </darktable:history>
   <dc:subject>
    <rdf:Seq>
     <rdf:li>darktable</rdf:li><rdf:li>exported</rdf:li><rdf:li>dog</rdf:li><rdf:li>sea</rdf:li>
    </rdf:Seq>
   </dc:subject>
{make_list("lr:hierarchicalSubject", "Seq", "darktable|exported", "animal|dog")}\
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>"""
DARKTABLE_TAGS = ["animal|dog", "sea"]


def packet(inside: str) -> str:
    """XMP with that in its description."""
    description = f'<rdf:Description rdf:about="" {NAMESPACES}>{inside}</rdf:Description>'
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
        f"<rdf:RDF {NAMESPACES}>{description}</rdf:RDF></x:xmpmeta>"
    )


def subjects(*words: str, kind: str = "Bag") -> str:
    """XMP with those keywords, escaped already."""
    items = "".join(f"<rdf:li>{word}</rdf:li>" for word in words)
    return packet(f"<dc:subject><rdf:{kind}>{items}</rdf:{kind}></dc:subject>")


def iptc(*words: bytes, charset: bytes | None = None) -> bytes:
    """An IPTC block with those keywords."""
    fields = [(1, 90, charset)] if charset else []
    fields += [(2, 0, b"\0\4"), (2, 5, b"a title"), *((2, 25, word) for word in words)]
    return b"".join(struct.pack(">BBBH", 0x1C, r, d, len(v)) + v for r, d, v in fields)


def photoshop(block: bytes) -> bytes:
    """Photoshop's resources with an IPTC block among others."""
    other = b"8BIM\x04\x25\x03abc" + struct.pack(">I", 3) + b"xyz\0"
    return (
        other
        + b"8BIM\x04\x04\0\0"
        + struct.pack(">I", len(block))
        + block
        + b"\0" * (len(block) % 2)
    )


def with_segments(jpeg: bytes, *segments: tuple[int, bytes]) -> bytes:
    """A JPEG file with those application segments in it."""
    inserted = b"".join(
        b"\xff" + bytes([marker]) + struct.pack(">H", len(content) + 2) + content
        for marker, content in segments
    )
    return jpeg[:2] + inserted + jpeg[2:]


def with_xmp(jpeg: bytes, xmp: str | bytes) -> bytes:
    xmp = xmp.encode() if isinstance(xmp, str) else xmp
    return with_segments(jpeg, (0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp))


def with_iptc(jpeg: bytes, block: bytes) -> bytes:
    return with_segments(jpeg, (0xED, b"Photoshop 3.0\0" + photoshop(block)))
