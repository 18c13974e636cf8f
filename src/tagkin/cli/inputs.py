"""Photographs and words that commands read, and notes on what is missing or cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tagkin.cli.output import note, relative, say, shown
from tagkin.cli.streams import escape
from tagkin.errors import InvalidInput, pip_install
from tagkin.progress import Progress
from tagkin.wording import count, name_first

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.catalogue import Scan
    from tagkin.features import Extraction

_NAMED = 3
_WORDS = 5


def note_files(result: Scan) -> None:
    """Name photographs that only a tag file knows, and say what happened to RAW files."""
    if result.absent:
        are = count(len(result.absent), "photograph that is", "photographs that are")
        note(f"the tag file names {are} not there: {name_first(result.absent)}")
    if result.raw_of:
        lie = count(len(result.raw_of), "RAW file lies", "RAW files lie")
        note(f"{lie} beside a photograph of the same name: each pair counts as one photograph.")
    if result.unread_raw:
        were = count(len(result.unread_raw), "RAW file was", "RAW files were")
        note(f"{were} skipped. To read RAW files: {pip_install('raw')}")


def read_features(model: Annotator, files: Sequence[str], step: Progress) -> Extraction:
    """Return photographs as the backbone sees them; raise if none of them can be read."""
    seen = model.read_features(files, progress=step)
    if not seen.files:
        first = "; ".join(f"{relative(f.file)}: {f.reason}" for f in seen.failures[:_NAMED])
        raise InvalidInput(f"None of the {len(files):,} photographs could be read. {first}")
    return seen


def read_words(vocabulary: str) -> list[str]:
    """Return the tags of a file, or a few hundred common tags."""
    if vocabulary == "common":
        from tagkin.tag_meanings import common_tags

        return list(common_tags())
    from tagkin.collection import read_tag_list

    return read_tag_list(vocabulary)


def note_unknown_words(model: Annotator, words: Sequence[str]) -> None:
    """Say which words of a vocabulary have no known meaning."""
    from tagkin.annotator.name_suggestions import check_words, find_unknown_words

    if unknown := find_unknown_words(check_words(words), model.reader.require_prior()):
        have = count(len(unknown), "word has", "words have")
        named = name_first(unknown, _WORDS)
        note(f"{have} no known meaning and cannot be suggested by name: {named}")


# --- what is missing -------------------------------------------------------------------------


def missing_text(files: Iterable[str]) -> str:
    """Return a message about the model's missing photographs; empty if none."""
    named = list(dict.fromkeys(files))
    missing = [file for file in named if not os.path.exists(file)]
    if not missing:
        return ""
    verb = "is" if len(missing) == 1 else "are"
    return (
        f"{len(missing):,} of the {count(len(named), 'photograph')} that the model names {verb} "
        f"not there: {name_first([*map(relative, missing)])}. If they have moved: tagkin scan "
        "FOLDER"
    )


def report_problems(problems: Iterable[Any], most: int | None = _NAMED) -> list[dict[str, str]]:
    """Name files that could not be read on standard error; return all of them for JSON."""
    reasons = {problem.file: problem.reason for problem in problems}
    if reasons:
        say(f"[yellow]Note:[/yellow] {count(len(reasons), 'file')} could not be read:")
    for k, (file, reason) in enumerate(reasons.items()):
        if k == most and len(reasons) > k + 1:
            say(f"  and {len(reasons) - k:,} more (--json names them all)")
            break
        say(f"  {shown(file)}: {escape(reason)}")
    return [{"file": relative(file), "reason": reason} for file, reason in reasons.items()]
