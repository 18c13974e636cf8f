"""Options that several commands share: the same name, the same meaning, the same help."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tagkin.features.registry import BACKBONES

__all__ = [
    "AsCsv",
    "AsJson",
    "AtLeast",
    "Backbone",
    "Below",
    "Cache",
    "Catalogue",
    "Collection",
    "Column",
    "DryRun",
    "Exclude",
    "ExcludeFile",
    "FileType",
    "Folder",
    "LeafOnly",
    "Merge",
    "MergePlurals",
    "MinCount",
    "ModelOrCatalogue",
    "NKin",
    "NoCache",
    "NoDenoise",
    "Overwrite",
    "Photo",
    "Photos",
    "PhotosOrAll",
    "RunOfSuggestions",
    "Seed",
    "Synonyms",
    "TagFilter",
    "Tags",
    "Verbose",
    "Views",
    "backbone_name",
    "complete_tag",
]


class Merge(StrEnum):
    """Which forms of a word are one tag."""

    plurals = "plurals"


def _complete_backbone(incomplete: str) -> list[str]:
    return [name for name in BACKBONES if name.startswith(incomplete)]


def backbone_name(backbone: str, views: int) -> str:
    """The name under which a model keeps its backbone, with the number of views.

    Where it is a path, the path from the root of the disk: a model finds it from any folder.
    """
    kind, colon, path = backbone.partition(":")
    if colon and Path(path).is_file():
        backbone = f"{kind}:{os.path.abspath(path)}"
    elif Path(backbone).is_file():
        backbone = os.path.abspath(backbone)
    return backbone if views == 1 else f"{backbone}@{views}"


def complete_tag(incomplete: str) -> list[str]:
    """Tags of the catalogue of the current folder that begin so."""
    from tagkin.catalogue import open_catalogue
    from tagkin.errors import TagkinError

    try:
        with open_catalogue() as catalogue:
            return catalogue.tags.starting_with(incomplete)
    except TagkinError:
        return []  # a person who types wants no errors


# arguments are hidden from the lists of options: the text of each command says what they are;
# whether they can be read is not asked here, since one that cannot be must not stop the others
Photos = Annotated[
    list[Path],
    typer.Argument(metavar="PHOTOS", show_default=False, hidden=True, readable=False),
]
PhotosOrAll = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PHOTOS", show_default=False, hidden=True, readable=False),
]
Photo = Annotated[
    Path, typer.Argument(metavar="PHOTO", show_default=False, hidden=True, readable=False)
]
ModelOrCatalogue = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "-m",
        metavar="DIR",
        show_default=False,
        help="The model's folder; without it, the model that was learned from the catalogue.",
    ),
]
Catalogue = Annotated[
    Path | None,
    typer.Option(
        "--catalogue",
        metavar="FILE",
        help="Catalogue file. Default: the current folder's, or the only one there is.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; tell what would be changed.")
]
TagFilter = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        autocompletion=complete_tag,
        help="Only suggestions of this tag; can be repeated.",
    ),
]
AtLeast = Annotated[
    float | None,
    typer.Option(
        "--at-least",
        metavar="X",
        min=0,
        max=1,
        help="Only suggestions with at least this confidence, from 0 to 1.",
    ),
]
Below = Annotated[
    float | None,
    typer.Option(
        "--below",
        metavar="X",
        min=0,
        max=1,
        help="Only suggestions with less than this confidence, from 0 to 1.",
    ),
]
RunOfSuggestions = Annotated[
    int | None,
    typer.Option("--run", metavar="N", min=1, help="Only suggestions of this run."),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Only photographs in this folder of the collection, and in those in it.",
    ),
]
FileType = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="SUFFIX",
        help="Only photographs of this file type, such as jpg, tif or raw; can be repeated.",
    ),
]
Collection = Annotated[
    Path | None,
    typer.Option(
        "--collection",
        metavar="DIR",
        help="The folder of the photographs that the model learned from, if they have moved. They "
        "are matched by name and content.",
    ),
]
Tags = Annotated[
    Path | None,
    typer.Option(
        "--tags",
        metavar="FILE|embedded|both|none",
        help="A tag file (.csv or .jsonl with a column file_name, or the output of exiftool -csv). "
        "By default metadata.jsonl or metadata.csv in the folder or, without one, the keywords in "
        "the photographs and in .xmp files beside them. embedded: only these keywords; both: the "
        "metadata file and the keywords; none: no tags.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="NAME", help="The column of the tag file that holds the tags."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Write CSV to standard output.")]
Verbatim = Annotated[
    bool,
    typer.Option(
        "--verbatim",
        help="With CSV: leave cells as they are. By default what a spreadsheet would take for "
        "a formula begins with ', and control characters are replaced.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Name every photograph that could not be read."),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        help="The folder of the feature cache, so that each photograph is analysed only once. By "
        "default $TAGKIN_CACHE or, if that is not set, tagkin in your user cache folder.",
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Do not use the feature cache.")]
Backbone = Annotated[
    str,
    typer.Option(
        "--backbone",
        metavar="NAME|PATH",
        autocompletion=_complete_backbone,
        help=f"The network that makes features of photographs: {', '.join(BACKBONES[:3])} (each "
        "also without -whole: quicker, for the middle of a photograph; or with -gem at its end), "
        "vgg16:PATH with torchvision's weights, or the path of an .onnx file.",
    ),
]
Views = Annotated[
    int,
    typer.Option(
        "--views",
        metavar="N",
        min=1,
        max=4,
        help="The mean of several views of each photograph, N times as slow: the middle (1), the "
        "whole (2), the middle mirrored (3), the whole mirrored (4).",
    ),
]
MinCount = Annotated[
    int, typer.Option("--min-count", metavar="N", help="Ignore tags on fewer photographs.")
]
Synonyms = Annotated[
    Path | None,
    typer.Option(
        "--synonyms",
        metavar="FILE",
        help="Tags that mean the same: one group per line, with commas, the tag to use first.",
    ),
]
MergePlurals = Annotated[
    Merge | None,
    typer.Option(
        "--merge", metavar="plurals", help="Merge singular and plural: dog and dogs are one tag."
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="TAG", help="Ignore this tag. May be repeated."),
]
ExcludeFile = Annotated[
    Path | None,
    typer.Option(
        "--exclude-file", metavar="FILE", help="Ignore the tags in this file, one per line."
    ),
]
LeafOnly = Annotated[
    bool,
    typer.Option("--leaf-only", help="Write animal|dog as dog, unless another tag ends in dog."),
]
NoDenoise = Annotated[
    bool,
    typer.Option(
        "--no-denoise",
        help="Use the tags as they are. By default they are smoothed where that helps.",
    ),
]
NKin = Annotated[
    int,
    typer.Option(
        "--n-kin", metavar="N", min=0, help="How many kin to show for each tag; 0 for none."
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="The same seed gives the same result.")
]
