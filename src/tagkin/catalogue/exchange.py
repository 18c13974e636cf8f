"""Export and import of a person's decisions, which only the catalogue has, as JSON lines.

Each line is an object with a "kind". The first names the format; then come edits of tags,
incomplete folders, and decisions, including finished photographs. Photographs are identified by
the digest of their content, so the lines apply on another machine and after a move. Nothing in
them names a file to write or to undo.

An export can come from anybody, so every field is checked before anything of its line is stored.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tagkin.catalogue.completeness import store_incomplete
from tagkin.catalogue.database import Database
from tagkin.catalogue.decision_records import REJECTED, Origin, decide_suggestions, store_decision
from tagkin.catalogue.photographs import add_content, incomplete_folders
from tagkin.catalogue.tag_records import tag_number
from tagkin.catalogue.tags import Tags
from tagkin.catalogue.target_paths import is_inside
from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput

__all__ = ["Imported", "export_lines", "import_lines"]

_LONGEST_TAG = 2000  # characters
_LONGEST_TEXT = 10_000  # characters
_HEX = re.compile("[0-9a-f]{64}")

_FIRST = {"kind": "tagkin", "format": "tagkin-decisions", "version": 1}


# --- export ------------------------------------------------------------------------------


def export_lines(database: Database) -> Iterator[dict[str, object]]:
    """Yield the decisions that apply and the edits of tags, as objects for JSON lines."""
    yield dict(_FIRST)
    # merged tags first, because a merge into a forgotten tag ends that
    for name, same_as, forgotten in database.rows(
        "SELECT t.name, o.name, t.forgotten FROM tags t LEFT JOIN tags o ON o.id = t.same_as "
        "WHERE o.id OR t.forgotten ORDER BY t.same_as IS NULL, t.id"
    ):
        yield {"kind": "tag", "tag": name, "same_as": same_as, "forgotten": bool(forgotten)}
    for folder in incomplete_folders(database):
        yield {"kind": "incomplete", "folder": folder}
    names = ("content", "path", "tag", "verdict", "made_at", "confidence", "note")
    for digest, *values in database.rows(
        "SELECT c.digest, (SELECT min(path) FROM photographs WHERE content = c.id), t.name, "
        "d.verdict, d.made_at, d.confidence, d.note FROM decisions d "
        "JOIN contents c ON c.id = d.content LEFT JOIN tags t ON t.id = d.tag "
        "WHERE d.holds ORDER BY d.id"
    ):
        yield {"kind": "decision"} | dict(zip(names, (digest.hex(), *values), strict=True))


# --- fields ------------------------------------------------------------------------------

Check = Callable[[Any], object]
"""Converts a value, or raises a ValueError that completes "`field` must be ..."."""


def _optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _is_text(value: object, longest: int, errors: str = "strict") -> bool:
    if not isinstance(value, str) or len(value) > longest:
        return False
    try:
        value.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def _text(value: Any) -> str:
    if not _is_text(value, _LONGEST_TEXT):
        raise ValueError(f"text of at most {_LONGEST_TEXT:,} characters")
    return str(value)


def _tag(value: Any) -> str:
    if not _is_text(value, _LONGEST_TAG) or not tidy(value):
        raise ValueError(f"a tag of at most {_LONGEST_TAG:,} characters")
    return str(value).replace("\0", "")  # as `tag_number` stores it


def _folder(value: Any) -> str:
    """Check a folder from the root, which need not be UTF-8."""
    if not _is_text(value, _LONGEST_TEXT, "surrogateescape") or (value and not is_inside(value)):
        raise ValueError("a folder inside the collection")
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _verdict(value: Any) -> int:
    if type(value) is not int or value not in (1, -1):
        raise ValueError("1 or -1")
    return value


def _confidence(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return float(value)


def _digest(value: Any) -> bytes:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError("a SHA-256 in hexadecimal")
    return bytes.fromhex(value)


def _moment(value: Any) -> str:
    """Return a time as the catalogue stores it: later times sort after earlier times."""
    try:
        moment = datetime.datetime.fromisoformat(_text(value))
        if moment.tzinfo is not None:
            return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError):
        pass
    raise ValueError("a date and time with a UTC offset (ISO 8601)")


_FIELDS: dict[str, dict[str, Check]] = {
    "tag": {"tag": _tag, "same_as": _optional(_tag), "forgotten": _flag},
    "incomplete": {"folder": _folder},
    "decision": {
        "content": _digest,
        "tag": _optional(_tag),
        "verdict": _verdict,
        "made_at": _moment,
        "confidence": _optional(_confidence),
        "note": _optional(_text),
    },
}
"""The fields of each kind of line, with their checks. Other fields and kinds are ignored."""


def _check_fields(plain: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of a line, checked and converted."""
    values: dict[str, Any] = {}
    for name, check in _FIELDS[str(plain["kind"])].items():
        value = plain.get(name)
        try:
            values[name] = check(value)
        except ValueError as error:
            text = repr(value)
            shown = text if len(text) <= 80 else f"{text[:80]}…"
            raise InvalidInput(f"`{name}` must be {error}; found {shown}") from None
    if values.get("verdict") == 1 and values["tag"] is None:
        raise InvalidInput("`verdict` must be -1 if `tag` is null: the photograph is finished")
    return values


# --- import ------------------------------------------------------------------------------


@dataclass
class Imported:
    """Numbers of imported records, without records that the catalogue had already."""

    tags: int = 0
    """Edits of tags; each is a run that can be undone."""
    folders: int = 0
    """Folders that are incomplete now."""
    decisions: int = 0
    """Decisions, including finished photographs; one run that can be undone."""


class _Decision(NamedTuple):
    """A decision to store, with the numbers of its content and its tag."""

    content: int
    tag: int | None
    verdict: int
    made_at: str
    confidence: float | None
    note: str | None


def import_lines(database: Database, lines: Iterable[str]) -> Imported:
    """Import all lines or none; see `Catalogue.import_lines`."""
    imported, folders, decided = Imported(), list[str](), list[dict[str, Any]]()
    with database.transaction():
        for number, plain in _parse(lines):
            try:
                fields = _check_fields(plain) if plain["kind"] in _FIELDS else {}
                if plain["kind"] == "tag":
                    imported.tags += _edit_tag(database, **fields)
            except InvalidInput as error:
                reason = str(error).rstrip(".")
                raise InvalidInput(
                    f"Line {number} cannot be imported: {reason}. Nothing was imported."
                ) from error
            if plain["kind"] == "incomplete":
                folders.append(fields["folder"])
            elif plain["kind"] == "decision":
                decided.append(fields)
        new_folders = set(folders) - set(incomplete_folders(database))
        for folder in sorted(new_folders):
            store_incomplete(database, folder)
        imported.folders = len(new_folders)
        decisions = [new for fields in decided if (new := _find_new(database, **fields))]
        imported.decisions = len(decisions)
        if decisions:
            with database.run("import") as run:
                _store_decisions(database, run.id, decisions)
                run.outcome["decisions"] = len(decisions)
    return imported


def _parse(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    first = True
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            if not isinstance(line["kind"], str):
                raise TypeError(line["kind"])
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInput(f"Line {number} is not what `tagkin export` writes.") from error
        if first and any(line.get(name) != value for name, value in _FIRST.items()):
            raise InvalidInput("The file does not begin as this version of `tagkin export` does.")
        first = False
        yield number, line
    if first:
        raise InvalidInput("The file is empty.")


def _edit_tag(database: Database, tag: str, same_as: str | None, forgotten: bool) -> int:
    """Edit a tag as a person would, in a run that can be undone; return how many edits it took."""
    tags, number = Tags(database), tag_number(database, tag)
    if same_as is not None:
        into = tag_number(database, same_as)
        if number != into:
            tags.change_numbers("merge", [number], tags.count(into).name)
        return int(number != into)
    is_new = forgotten and not tags.count(number).is_forgotten
    if is_new:
        tags.change_numbers("forget", [number])
    return int(is_new)


def _find_new(
    database: Database, content: bytes, tag: str | None, made_at: str, verdict: int, **fields: Any
) -> _Decision | None:
    """Return a decision to store, or None if the catalogue knows it or a later one applies."""
    decision = _Decision(
        add_content(database, content),
        None if tag is None else tag_number(database, tag),
        verdict,
        made_at,
        **fields,
    )
    is_known = database.row(
        "SELECT 1 FROM decisions WHERE content = ?1 AND tag IS ?2 "
        "AND (made_at = ?4 AND verdict = ?3 OR holds AND made_at >= ?4)",
        decision[:4],
    )
    return None if is_known else decision


def _store_decisions(database: Database, run: int, decisions: Iterable[_Decision]) -> None:
    """Store decisions in the order of time; finished photographs come last and reject the rest."""
    for new in sorted(decisions, key=lambda new: (new.tag is None, new.made_at)):
        pair = new.content, new.tag
        if new.tag is None:
            matching, values = "s.content = ?", (new.content,)
            decide_suggestions(database, matching, values, run, REJECTED, new.note)
        shown = Origin(None, new.confidence, b"")
        store_decision(database, run, pair, new.verdict, new.note, shown)
        database.execute(
            # nobody knows whether files had the tag then, so nothing is removed from them
            "UPDATE decisions SET made_at = ?, was_in_files = 0 "
            "WHERE content = ? AND tag IS ? AND holds",
            (new.made_at, *pair),
        )
