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
    "Backbone",
    "Cache",
    "Collection",
    "Column",
    "Exclude",
    "ExcludeFile",
    "LeafOnly",
    "Merge",
    "MergePlurals",
    "MinCount",
    "Model",
    "NKin",
    "NoCache",
    "NoDenoise",
    "Overwrite",
    "Photo",
    "Photos",
    "Seed",
    "Synonyms",
    "Tags",
    "Verbose",
    "whole_path",
]


class Merge(StrEnum):
    """Which forms of a word are one tag."""

    plurals = "plurals"


def _complete_backbone(incomplete: str) -> list[str]:
    return [name for name in BACKBONES if name.startswith(incomplete)]


def whole_path(backbone: str) -> str:
    """A backbone's name as it is; where it is a path, the path from the root of the disk.

    So a model finds it from any folder.
    """
    kind, colon, path = backbone.partition(":")
    if colon and Path(path).is_file():
        return f"{kind}:{os.path.abspath(path)}"
    return os.path.abspath(backbone) if Path(backbone).is_file() else backbone


# arguments are hidden from the lists of options: the text of each command says what they are;
# whether they can be read is not asked here, since one that cannot be must not stop the others
Photos = Annotated[
    list[Path],
    typer.Argument(metavar="PHOTOS", show_default=False, hidden=True, readable=False),
]
Photo = Annotated[
    Path, typer.Argument(metavar="PHOTO", show_default=False, hidden=True, readable=False)
]
Model = Annotated[
    Path,
    typer.Option("--model", "-m", metavar="DIR", show_default=False, help="The model's folder."),
]
Collection = Annotated[
    Path | None,
    typer.Option(
        "--collection",
        metavar="DIR",
        help="Where the photographs that the model was learned from are now, if they were moved; "
        "they are found again by name and content.",
    ),
]
Tags = Annotated[
    Path | None,
    typer.Option(
        "--tags",
        metavar="FILE|embedded|both|none",
        help="A tag file (.csv or .jsonl with a column file_name, or what exiftool -csv writes). "
        "Without it, metadata.jsonl or metadata.csv in the folder; without that, the keywords in "
        "the photographs and in .xmp files beside them. embedded: these keywords, whatever files "
        "there are; both: the metadata file in the folder and the keywords; none: no tags.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option("--column", metavar="NAME", help="The column of tags in the tag file."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on standard output.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="CSV on standard output.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Name every photograph that could not be read."),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        help="Where what was seen in photographs is kept, so that each is looked at once; by "
        "default TAGKIN_CACHE, or tagkin in your folder of caches.",
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Keep nothing, and use nothing kept.")]
Backbone = Annotated[
    str,
    typer.Option(
        "--backbone",
        metavar="NAME|PATH",
        autocompletion=_complete_backbone,
        help=f"What looks at photographs: {', '.join(BACKBONES)}, vgg16:PATH with torchvision's "
        "weights, or the path of an .onnx file.",
    ),
]
MinCount = Annotated[
    int, typer.Option("--min-count", metavar="N", help="Tags on fewer photographs are left out.")
]
Synonyms = Annotated[
    Path | None,
    typer.Option(
        "--synonyms",
        metavar="FILE",
        help="Tags that mean the same: a group per line, with commas, the tag to use first.",
    ),
]
MergePlurals = Annotated[
    Merge | None,
    typer.Option("--merge", metavar="plurals", help="Take dog and dogs for one tag, and so on."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="TAG", help="Do not learn this tag; can be repeated."),
]
ExcludeFile = Annotated[
    Path | None,
    typer.Option("--exclude-file", metavar="FILE", help="Do not learn these tags, one per line."),
]
LeafOnly = Annotated[
    bool,
    typer.Option("--leaf-only", help="Write dog for animal|dog, where no other tag ends so."),
]
NoDenoise = Annotated[
    bool,
    typer.Option(
        "--no-denoise",
        help="Take the tags as they are; by default they are smoothed where that helps.",
    ),
]
NKin = Annotated[
    int,
    typer.Option("--n-kin", metavar="N", min=0, help="Kin to name for each tag; 0 names none."),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="The same seed gives the same result.")
]
