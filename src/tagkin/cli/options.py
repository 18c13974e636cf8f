"""Arguments and options that commands share: the same name, the same meaning, the same help."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from typer.models import ArgumentInfo

from tagkin.features.backbone_names import BACKBONES, EYES
from tagkin.tag_servers import SERVERS

T = TypeVar("T")
Choice = TypeVar("Choice", bound=StrEnum)


def _exclude(other: str, option: str) -> Callable[[typer.Context, T], T]:
    """Return a callback that rejects an option together with the other one."""

    def check(context: typer.Context, value: T) -> T:
        if value not in (None, False) and context.params.get(other) not in (None, False):
            name = other.removeprefix("as_")
            raise typer.BadParameter(f"{option} and --{name} do not go together: choose one.")
        return value

    return check


def _complete_backbone(incomplete: str) -> list[str]:
    return [name for name in (*BACKBONES, EYES) if name.startswith(incomplete)]


def backbone_name(backbone: str) -> str:
    """Return the name under which a model keeps its backbone; a path becomes absolute."""
    return os.path.abspath(backbone) if Path(backbone).is_file() else backbone


def read_words(vocabulary: str) -> list[str]:
    """Return the tags of a file, or a few hundred common tags."""
    if vocabulary == "common":
        from tagkin.tag_meanings import common_tags

        return list(common_tags())
    from tagkin.collection import read_tag_list

    return read_tag_list(vocabulary)


def parse_share(text: str) -> float:
    """Return a number from 0 to 1."""
    try:
        share = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None
    if 0 <= share <= 1:
        return share
    hint = f" For {share:g} %, write {share / 100:g}." if 1 < share <= 100 else ""
    raise typer.BadParameter(f"{text} is not between 0 and 1.{hint}")


def parse_count(text: str | int) -> int:
    """Return a whole number from 1 on; a default is one."""
    if str(text).isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(f"{text} is not a whole number from 1 on.")


def parse_choice(choices: type[Choice]) -> Callable[[str], Choice]:
    """Return a parser of one of several words."""

    def parse(text: str) -> Choice:
        try:
            return choices(text)
        except ValueError:
            raise typer.BadParameter(f"{text} is not {' or '.join(choices)}.") from None

    return parse


def complete_tag(incomplete: str) -> list[str]:
    """Return the tags of the current folder's catalogue that begin so."""
    from tagkin.catalogue import open_catalogue
    from tagkin.errors import TagkinError

    try:
        with open_catalogue() as catalogue:
            names = [name for _, name in catalogue.tags.complete(incomplete)]
            return [name for name in names if name.lower().startswith(incomplete.lower())]
    except TagkinError:
        return []  # a person who types wants no errors


# --- arguments ----------------------------------------------------------------------------


def argument(name: str, callback: Callable[[object], object] | None = None) -> ArgumentInfo:
    """Return an argument that the text of the command explains, and no list of options.

    Whether a file can be read is not checked here: a file that cannot must not stop others.
    `callback` returns the value that the command gets.
    """
    return typer.Argument(
        metavar=name, show_default=False, hidden=True, readable=False, callback=callback
    )


def find_on_server(value: object) -> object:
    """Return the path of a server's collection for its name, such as immich or immich/2024."""
    if isinstance(value, list):
        return [find_on_server(each) for each in value]
    if not isinstance(value, Path) or "".join(value.parts[:1]) not in SERVERS:
        return value
    from tagkin.catalogue.known_catalogues import server_folder

    folder = server_folder(value.parts[0])
    return folder.joinpath(*value.parts[1:]) if folder.is_dir() else value


PhotosOrAll = Annotated[list[Path] | None, argument("PHOTOS", find_on_server)]
Photo = Annotated[Path, argument("PHOTO", find_on_server)]
Folder = Annotated[Path | None, argument("FOLDER", find_on_server)]

# --- which catalogue, and which suggestions ---------------------------------------------

Catalogue = Annotated[
    Path | None,
    typer.Option(
        "--catalogue",
        metavar="FILE",
        help="Catalogue file. Default: the folder's own.",
    ),
]
TagFilter = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        autocompletion=complete_tag,
        help="Only this tag, or these if repeated.",
    ),
]
FolderFilter = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        callback=find_on_server,
        help="Only photographs in this folder and its subfolders.",
    ),
]
# --- which suggestions are made ---------------------------------------------------------

OnlyUntagged = Annotated[
    bool, typer.Option("--only-untagged", help="Skip photographs that have tags.")
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="X",
        parser=parse_share,
        callback=_exclude("precision", "--threshold"),
        help="Smallest confidence. Default: 0.5, without --precision and -n.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        "--precision",
        metavar="X",
        parser=parse_share,
        callback=_exclude("threshold", "--precision"),
        help="Suggest as many tags as possible at this precision.",
    ),
]
NTags = Annotated[
    int | None,
    typer.Option("-n", metavar="N", parser=parse_count, help="At most N tags per photograph."),
]
Vocabulary = Annotated[
    str | None,
    typer.Option(
        "--vocabulary",
        metavar="FILE|common",
        help="Also suggest tags that no photograph has yet, by their names: from a text file, "
        "one per line, or common tags.",
    ),
]

# --- tags in files, and learning --------------------------------------------------------

Column = Annotated[
    str | None,
    typer.Option("--column", metavar="NAME", help="The column with the tags in the tag file."),
]
Backbone = Annotated[
    str,
    typer.Option(
        "--backbone",
        metavar="NAME|PATH",
        autocompletion=_complete_backbone,
        help=f"The network that reads photographs: {' or '.join(BACKBONES)}, {EYES} (see tagkin "
        "connect), or the path of an .onnx file.",
    ),
]
MinCount = Annotated[
    int,
    typer.Option("--min-count", metavar="N", help="Ignore tags on fewer than N photographs."),
]

# --- output -----------------------------------------------------------------------------

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Write an HTML report.")
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", callback=_exclude("as_csv", "--json"), help="Write JSON to standard output."
    ),
]
AsCsv = Annotated[
    bool,
    typer.Option(
        "--csv", callback=_exclude("as_json", "--csv"), help="Write CSV to standard output."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, without changing it.")
]
