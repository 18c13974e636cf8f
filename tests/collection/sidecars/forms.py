"""Sidecars in the forms in which programs write them, with what must survive in each."""

from tests.collection.xmp_samples import make_list

_RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'

# Lightroom Classic beside a raw file: settings as attributes, tabs or blanks, no XML declaration.
LIGHTROOM = f"""<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="Adobe XMP Core 7.0-c000 1.000000, \
0000/00/00-00:00:00        ">
 <rdf:RDF {_RDF}>
  <rdf:Description rdf:about=""
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
    xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/"
    xmlns:stEvt="http://ns.adobe.com/xap/1.0/sType/ResourceEvent#"
    xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/"
   xmp:Rating="4"
   xmp:MetadataDate="2024-05-01T10:00:00+02:00"
   crs:Version="15.4"
   crs:Exposure2012="+0.35"
   crs:HasSettings="True">
{make_list("dc:subject", "Bag", "dog", "Lake &amp; shore")}\
{make_list("lr:hierarchicalSubject", "Bag", "animal|dog", "Lake &amp; shore")}\
   <xmpMM:History>
    <rdf:Seq>
     <rdf:li
      stEvt:action="saved"
      stEvt:when="2024-05-01T10:00:00+02:00"
      stEvt:changed="/metadata"/>
    </rdf:Seq>
   </xmpMM:History>
{make_list("crs:ToneCurvePV2012", "Seq", "0, 0", "255, 255")}\
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"""

# darktable: Exiv2's layout, its history as structures in attributes, tags in Seq.
DARKTABLE = f"""<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF {_RDF}>
  <rdf:Description rdf:about=""
    xmlns:exif="http://ns.adobe.com/exif/1.0/"
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/"
    xmlns:darktable="http://darktable.sf.net/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
   exif:DateTimeOriginal="2024:05:01 10:00:00"
   xmp:Rating="1"
   xmpMM:DerivedFrom="img.cr2"
   darktable:import_timestamp="63850000000000000"
   darktable:xmp_version="5"
   darktable:raw_params="0"
   darktable:auto_presets_applied="1">
   <darktable:masks_history>
    <rdf:Seq/>
   </darktable:masks_history>
   <darktable:history>
    <rdf:Seq>
     <rdf:li
      darktable:num="0"
      darktable:operation="rawprepare"
      darktable:enabled="1"
      darktable:params="00000000ff03"
      darktable:multi_name=""/>
    </rdf:Seq>
   </darktable:history>
{make_list("dc:subject", "Seq", "darktable", "exported", "dog")}\
{make_list("lr:hierarchicalSubject", "Seq", "darktable|exported", "animal|dog")}\
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"""

# digiKam: the same layout, tags in its own list first, and in everybody else's.
DIGIKAM = f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF {_RDF}>
  <rdf:Description rdf:about=""
    xmlns:digiKam="http://www.digikam.org/ns/1.0/"
    xmlns:MicrosoftPhoto="http://ns.microsoft.com/photo/1.0/"
    xmlns:acdsee="http://ns.acdsee.com/iptc/1.0/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:mwg-rs="http://www.metadataworkinggroup.com/schemas/regions/"
   acdsee:categories="&lt;Categories&gt;&lt;Category Assigned=&quot;1&quot;&gt;dog&lt;/Category&gt;\
&lt;/Categories&gt;"
   digiKam:ColorLabel="0">
{make_list("digiKam:TagsList", "Seq", "animal/dog", "_Digikam_Internal_Tags_/Color Label Red")}\
{make_list("MicrosoftPhoto:LastKeywordXMP", "Bag", "animal/dog")}\
   <mwg-rs:Regions rdf:parseType="Resource">
    <mwg-rs:RegionList><rdf:Bag/></mwg-rs:RegionList>
   </mwg-rs:Regions>
{make_list("lr:hierarchicalSubject", "Bag", "animal|dog")}\
{make_list("dc:subject", "Bag", "dog")}\
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>"""


def _by_exiftool(version: str, *descriptions: str) -> str:
    """Lay out a sidecar as exiftool does: a description for each namespace, and single quotes."""
    parts = (
        f"\n <rdf:Description rdf:about=''\n{inside}\n </rdf:Description>\n"
        for inside in descriptions
    )
    return f"""<?xpacket begin='\ufeff' id='W5M0MpCehiHzreSzNTczkc9d'?>
<x:xmpmeta xmlns:x='adobe:ns:meta/' x:xmptk='Image::ExifTool {version}'>
<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>
{"".join(parts)}</rdf:RDF>
</x:xmpmeta>
<?xpacket end='w'?>"""


EXIFTOOL = _by_exiftool(
    "12.57",
    """  xmlns:dc='http://purl.org/dc/elements/1.1/'>
  <dc:subject>
   <rdf:Bag>
    <rdf:li>dog</rdf:li>
   </rdf:Bag>
  </dc:subject>""",
    """  xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/'>
  <photoshop:City>Wien</photoshop:City>""",
)

# Immich writes through exiftool: tags in its list, no dc:subject, a rating and a place beside.
IMMICH = _by_exiftool(
    "13.00",
    """  xmlns:digiKam='http://www.digikam.org/ns/1.0/'>
  <digiKam:TagsList>
   <rdf:Seq>
    <rdf:li>animal/dog</rdf:li>
   </rdf:Seq>
  </digiKam:TagsList>""",
    """  xmlns:exif='http://ns.adobe.com/exif/1.0/'>
  <exif:GPSLatitude>48,12.5N</exif:GPSLatitude>
  <exif:GPSLongitude>16,22.3E</exif:GPSLongitude>""",
    """  xmlns:xmp='http://ns.adobe.com/xap/1.0/'>
  <xmp:Rating>3</xmp:Rating>""",
)

# A sidecar without any tag, all in attributes, as Camera Raw writes it.
ATTRIBUTES = f"""<x:xmpmeta xmlns:x="adobe:ns:meta/">
\t<rdf:RDF {_RDF}>
\t\t<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="2"/>
\t</rdf:RDF>
</x:xmpmeta>
"""

PROGRAMS = {
    "lightroom": LIGHTROOM.encode(),
    "darktable": DARKTABLE.encode(),
    "digikam": DIGIKAM.encode(),
    "exiftool": EXIFTOOL.encode(),
    "immich": IMMICH.encode(),
    "attributes": ATTRIBUTES.encode(),
    "windows line ends": LIGHTROOM.replace("\n", "\r\n").encode("utf-8-sig"),
    "utf-16": DIGIKAM.encode("utf-16"),
}
