"""What commands start from: a model, and photographs with their tags."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagkin.cli.output import note, only_one, relative, say, shown, shown_text
from tagkin.cli.tables import count
from tagkin.errors import InvalidInput, pip_install
from tagkin.progress import Progress

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.collection import Collection

__all__ = [
    "open_model",
    "photographs",
    "report_missing",
    "report_problems",
    "seen_of",
    "tag_settings",
    "tagged",
    "use_cache",
]

_NAMED = 3


def use_cache(folder: Path | None, no_cache: bool) -> bool:
    """Whether features are kept; from now on in the folder, where one is named."""
    only_one(cache=folder, no_cache=no_cache)
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"{relative(folder)} is a file; a cache is a folder.")
        os.environ["TAGKIN_CACHE"] = os.path.abspath(folder)
    return not no_cache


def open_model(
    folder: Path,
    cache: Path | None = None,
    no_cache: bool = False,
    collection: Path | None = None,
    step: Progress | None = None,
    leaf_only: bool = False,
    photos: Sequence[Path] | None = None,
    root: Path | None = None,
) -> Annotator:
    """Read a model that ``tagkin train`` wrote.

    The photographs that it was learned from are looked for in the folder `collection`, and one of
    the `photos` that a command is given anyway may be their folder under another name. Those of a
    catalogue are in its `root`.
    """
    kept = use_cache(cache, no_cache)
    from tagkin.annotator import Annotator

    model = Annotator.load(folder)
    model.cache = kept
    model.vocabulary_.leaf_only |= leaf_only
    if root is not None:
        model.adopt_folder(root, prefer=True)
    if collection is not None:
        if not collection.is_dir():
            raise InvalidInput(f"{relative(collection)} is not a folder. Check the path.")
        model.relocate(collection, progress=step)
    for folder in photos or ():
        if os.path.isdir(folder):  # False, not an error, where nobody may look
            model.adopt_folder(folder)
    return model


def tag_settings(
    synonyms: Path | None, merge: Any, exclude: Sequence[str] | None, exclude_file: Path | None
) -> dict[str, Any]:
    """Which tags are one and which are left out, as parameters of an annotator."""
    from tagkin.collection import read_synonyms, read_tag_list

    left_out = [*(exclude or ()), *(read_tag_list(exclude_file) if exclude_file else ())]
    return {
        "aliases": read_synonyms(synonyms) if synonyms else None,
        "merge_plurals": merge is not None,
        "exclude": left_out or None,
    }


def missing_text(files: Iterable[str]) -> str:
    """Which of a model's photographs are not where they were, in words; none is no word."""
    asked = list(dict.fromkeys(files))
    gone = [file for file in asked if not os.path.exists(file)]
    if not gone:
        return ""
    named = ", ".join(relative(file) for file in gone[:_NAMED])
    more = ", …" if len(gone) > _NAMED else ""
    verb = "is" if len(gone) == 1 else "are"
    return (
        f"{len(gone):,} of the {count(len(asked), 'photograph', 'photographs')} that the model "
        f"names {verb} not there: {named}{more}. If they have moved, name their folder with "
        "--collection DIR."
    )


def report_missing(files: Iterable[str]) -> None:
    """Say on standard error which of a model's photographs are not where they were."""
    if text := missing_text(files):
        note(text)


def photographs(
    locations: Sequence[Path], tags: Path | None, column: str | None, step: Progress
) -> Collection:
    """Find photographs and their tags; say what is not there and what was done with RAW files."""
    from tagkin.collection import read_collection

    found = read_collection(locations, tags, column=column, progress=step)
    if found.absent:
        n, named = len(found.absent), ", ".join(found.absent[:_NAMED])
        more = ", …" if n > _NAMED else ""
        verb = "photograph that is" if n == 1 else "photographs that are"
        note(f"{relative(found.tag_file)} names {n:,} {verb} not there: {named}{more}")
    if found.raw_of:
        lie = count(len(found.raw_of), "RAW file lies", "RAW files lie")
        note(f"{lie} beside a photograph of the same name: each pair counts as one photograph.")
    if found.unread_raw:
        were = count(len(found.unread_raw), "RAW file was", "RAW files were")
        note(f"{were} skipped. To read RAW files: {pip_install('raw')}")
    return found


def tagged(found: Collection) -> Collection:
    """The photographs that carry tags; there have to be some."""
    some = found.tagged()
    if not len(some) and found.tags_from == "none":
        raise InvalidInput("--tags none leaves no tags to learn from. Omit it.")
    if not len(some):
        raise InvalidInput(
            f"None of the {len(found):,} photographs carries a tag. Tags were looked for in "
            f"{relative(found.source)}. Name a tag file with --tags, or its column with --column."
        )
    return some


def seen_of(model: Annotator, found: Collection, step: Progress) -> tuple[Any, list[Sequence[str]]]:
    """Tagged photographs as the backbone sees them, and the tags of those that can be read."""
    some = tagged(found)
    seen = model.read_features(some.files, progress=step)
    if not seen.files:
        first = "; ".join(f"{relative(f.file)}: {f.reason}" for f in seen.failures[:_NAMED])
        raise InvalidInput(f"None of the {len(some):,} photographs could be read. {first}")
    tags_of = dict(zip(some.files, some.tags, strict=True))
    return seen, [tags_of[file] for file in seen.files]


def report_problems(problems: Iterable[Any], verbose: bool) -> list[dict[str, str]]:
    """Name what could not be read on standard error: the first few, or all; the same for JSON."""
    each = {one.file: one.reason for one in problems}
    if each:
        what = "1 file" if len(each) == 1 else f"{len(each):,} files"
        say(f"[yellow]Note:[/yellow] {what} could not be read:")
    for k, (file, reason) in enumerate(each.items()):
        if k == _NAMED and not verbose and len(each) > _NAMED + 1:
            say(f"  and {len(each) - k:,} more (--verbose names them all)")
            break
        say(f"  {shown(file)}: {shown_text(reason)}")
    return [{"file": relative(file), "reason": reason} for file, reason in each.items()]
