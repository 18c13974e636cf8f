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
from dataclasses import dataclass, field, fields
from typing import NamedTuple, TypeGuard, TypeVar

from tagkin.catalogue.columns import pack_evidence, unpack_evidence
from tagkin.catalogue.completeness import Completeness, store_incomplete
from tagkin.catalogue.database import Database
from tagkin.catalogue.decision_records import REJECTED, Origin, decide_suggestions, store_decision
from tagkin.catalogue.photographs import add_content, incomplete_folders
from tagkin.catalogue.tag_records import tag_number
from tagkin.catalogue.tags import Tags
from tagkin.catalogue.target_paths import is_inside
from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput

__all__ = ["Imported", "export_lines", "import_lines"]

T = TypeVar("T")
Check = Callable[[object], T]
"""Converts a value, or raises a ValueError that completes "`field` must be ..."."""

_LONGEST_TAG = 2000  # characters
_LONGEST_TEXT = 10_000  # characters
_MOST_KIN = 100_000
_HEX = re.compile("[0-9a-f]{64}")

_FORMAT, _VERSION = "tagkin-decisions", 1


# --- export ------------------------------------------------------------------------------


def export_lines(database: Database) -> Iterator[dict[str, object]]:
    """Yield the decisions that apply and the edits of tags, as objects for JSON lines."""
    yield {"kind": "tagkin", "format": _FORMAT, "version": _VERSION}
    finished = set(Completeness(database).finished_tags())
    # merged tags first, because a merge into a forgotten tag ends that
    for name, same_as, forgotten, hidden in database.rows(
        "SELECT t.name, o.name, t.forgotten, t.hidden FROM tags t "
        "LEFT JOIN tags o ON o.id = t.same_as ORDER BY t.same_as IS NULL, t.id"
    ):
        states = {"forgotten": bool(forgotten), "hidden": bool(hidden)}
        states |= {"finished": name in finished}
        if same_as is not None or any(states.values()):
            yield {"kind": "tag", "tag": name, "same_as": same_as} | states
    for folder in incomplete_folders(database):
        yield {"kind": "incomplete", "folder": folder}
    digests = {c: d.hex() for c, d in database.rows("SELECT id, digest FROM contents")}
    names = ("content", "path", "tag", "verdict", "made_at", "confidence", "note")
    for *values, packed in database.rows(
        "SELECT d.content, (SELECT min(path) FROM photographs WHERE content = d.content), t.name, "
        "d.verdict, d.made_at, d.confidence, d.note, d.evidence "
        "FROM decisions d LEFT JOIN tags t ON t.id = d.tag WHERE d.holds ORDER BY d.id"
    ):
        decision = dict(zip(names, values, strict=True))
        decision["content"] = digests[decision["content"]]
        evidence = unpack_evidence(packed)
        decision["kin"] = [[digests[c], share] for c, share in evidence.kin if c in digests]
        decision |= {"name_share": evidence.name_share, "readout_share": evidence.readout_share}
        yield {"kind": "decision"} | decision


# --- fields ------------------------------------------------------------------------------


def _optional(check: Check[T]) -> Check[T | None]:
    return lambda value: None if value is None else check(value)


def _is_text(value: object, longest: int, errors: str = "strict") -> TypeGuard[str]:
    if not isinstance(value, str) or len(value) > longest:
        return False
    try:
        value.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def _text(value: object) -> str:
    if not _is_text(value, _LONGEST_TEXT):
        raise ValueError(f"text of at most {_LONGEST_TEXT:,} characters")
    return value


def _tag(value: object) -> str:
    if not _is_text(value, _LONGEST_TAG) or not tidy(value):
        raise ValueError(f"a tag of at most {_LONGEST_TAG:,} characters")
    return value.replace("\0", "")  # as `tag_number` stores it


def _folder(value: object) -> str:
    """Check a folder from the root, which need not be UTF-8."""
    if not _is_text(value, _LONGEST_TEXT, "surrogateescape") or (value and not is_inside(value)):
        raise ValueError("a folder inside the collection")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _verdict(value: object) -> int:
    if type(value) is not int or value not in (1, -1):
        raise ValueError("1 or -1")
    return value


def _share(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return float(value)


def _digest(value: object) -> bytes:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError("a SHA-256 in hexadecimal")
    return bytes.fromhex(value)


def _kin(value: object) -> tuple[tuple[bytes, float], ...]:
    try:
        if isinstance(value, list) and len(value) <= _MOST_KIN:
            return tuple((_digest(digest), _share(share)) for digest, share in value)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"a list of at most {_MOST_KIN:,} pairs of a SHA-256 and a share")


def _moment(value: object) -> str:
    """Return a time as the catalogue stores it: later times sort after earlier times."""
    try:
        moment = datetime.datetime.fromisoformat(_text(value))
        if moment.tzinfo is not None:
            return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError):
        pass
    raise ValueError("a date and time with a UTC offset (ISO 8601)")


# --- lines -------------------------------------------------------------------------------


def _checked(check: Check[T]) -> T:
    """Declare a field of a line with its check."""
    declared: T = field(metadata={"check": check})
    return declared


@dataclass(frozen=True)
class TagLine:
    """An edited or finished tag."""

    tag: str = _checked(_tag)
    same_as: str | None = _checked(_optional(_tag))
    forgotten: bool = _checked(_flag)
    hidden: bool = _checked(_flag)
    finished: bool = _checked(_flag)


@dataclass(frozen=True)
class IncompleteLine:
    """A folder whose tags in files are incomplete."""

    folder: str = _checked(_folder)


@dataclass(frozen=True)
class DecisionLine:
    """A decision on a tag of a photograph; without a tag, the photograph is finished."""

    content: bytes = _checked(_digest)
    tag: str | None = _checked(_optional(_tag))
    verdict: int = _checked(_verdict)
    made_at: str = _checked(_moment)
    confidence: float | None = _checked(_optional(_share))
    kin: tuple[tuple[bytes, float], ...] = _checked(_kin)
    name_share: float | None = _checked(_optional(_share))
    readout_share: float | None = _checked(_optional(_share))
    note: str | None = _checked(_optional(_text))


Line = TagLine | IncompleteLine | DecisionLine

_LINES: dict[str, type[Line]] = {
    "tag": TagLine,
    "incomplete": IncompleteLine,
    "decision": DecisionLine,
}
"""The records of each kind of line. Other fields are ignored."""


def read_line(plain: Mapping[str, object]) -> Line | None:
    """Return the record of a line, checked and converted, or None if its kind is unknown.

    Raises
    ------
    InvalidInput
        Names the field and what it must be.
    """
    if (kind := str(plain["kind"])) not in _LINES:
        return None
    values = {}
    for column in fields(_LINES[kind]):
        value = plain.get(column.name)
        try:
            values[column.name] = column.metadata["check"](value)
        except ValueError as error:
            raise InvalidInput(
                f"`{column.name}` must be {error}; found {_show_value(value)}"
            ) from None
    line = _LINES[kind](**values)
    if isinstance(line, DecisionLine) and line.tag is None and line.verdict != -1:
        raise InvalidInput("`verdict` must be -1 if `tag` is null: the photograph is finished")
    return line


def _show_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


# --- import ------------------------------------------------------------------------------


@dataclass
class Imported:
    """Numbers of imported records, without records that the catalogue had already."""

    tags: int = 0
    """Edits of tags; each is a run that can be undone."""
    folders: int = 0
    """Folders that are incomplete now."""
    decisions: int = 0
    """Decisions, including finished photographs; with finished tags, one run that can be undone."""


def import_lines(database: Database, lines: Iterable[str]) -> Imported:
    """Import all lines or none; see `Catalogue.import_lines`."""
    imported = Imported()
    with database.transaction():
        _Import(database, imported).store(_parse(lines))
    return imported


def _parse(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    first = True
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            kind, version = line["kind"], line.get("version", 0)
            is_newer = first and version > _VERSION
            if not isinstance(kind, str):
                raise TypeError(kind)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInput(f"Line {number} is not what `tagkin export` writes.") from error
        if first and (kind, line.get("format")) != ("tagkin", _FORMAT):
            raise InvalidInput("The file does not begin as `tagkin export` writes it.")
        if is_newer:
            raise InvalidInput("The file was written by a newer tagkin. Install that version.")
        first = False
        yield number, line
    if first:
        raise InvalidInput("The file is empty.")


class _NewDecision(NamedTuple):
    """A decision to store, with the numbers of its content and its tag."""

    content: int
    tag: int | None
    line: DecisionLine


class _Import:
    def __init__(self, database: Database, imported: Imported):
        self.database, self.imported = database, imported
        self.decisions: list[DecisionLine] = []
        self.finished: list[str] = []
        self.folders: list[str] = []

    def store(self, lines: Iterator[tuple[int, dict[str, object]]]) -> None:
        for number, plain in lines:
            try:
                match read_line(plain):
                    case TagLine() as line:
                        self._edit_tag(line)
                    case IncompleteLine(folder):
                        self.folders.append(folder)
                    case DecisionLine() as line:
                        self.decisions.append(line)
            except InvalidInput as error:
                reason = str(error).rstrip(".")
                raise InvalidInput(
                    f"Line {number} cannot be imported: {reason}. Nothing was imported."
                ) from error
        self._declare_incomplete()
        self._decide()

    def _edit_tag(self, line: TagLine) -> None:
        """Edit a tag as a person would, in a run that can be undone."""
        tags, name, into = Tags(self.database), line.tag, None
        number = tag_number(self.database, name)
        now = tags.count(number)
        changes = {
            "forget": line.forgotten and not now.is_forgotten,
            "hide": line.hidden and not now.is_hidden,
        }
        if line.same_as is not None:
            new = tag_number(self.database, line.same_as)
            into, changes = tags.count(new).name, {"merge": number != new}
        for what in (what for what, is_new in changes.items() if is_new):
            tags.change(what, [name], into)
            self.imported.tags += 1
        if line.finished:
            self.finished.append(name)

    def _declare_incomplete(self) -> None:
        known = incomplete_folders(self.database)
        new = [folder for folder in dict.fromkeys(self.folders) if folder not in known]
        for folder in new:
            store_incomplete(self.database, folder)
        self.imported.folders = len(new)

    def _decide(self) -> None:
        """Store the decisions and the finished tags in one run.

        Finished photographs come last and reject the rest. The rejections by which a tag was
        finished are among the decisions.
        """
        decisions = [new for line in self.decisions if (new := self._new_decision(line))]
        known = Completeness(self.database).finished_tags()
        finished = [name for name in dict.fromkeys(self.finished) if name not in known]
        if not decisions and not finished:
            return
        with self.database.run("import", {"tags": finished} if finished else None) as run:
            for new in sorted(decisions, key=lambda new: (new.tag is None, new.line.made_at)):
                content, tag, line = new
                if tag is None:
                    decide_suggestions(
                        self.database, "s.content = ?", (content,), run.id, REJECTED, line.note
                    )
                shown = self._read_origin(line)
                store_decision(
                    self.database, run.id, (content, tag), line.verdict, line.note, shown
                )
                self.database.execute(
                    # nobody knows whether files had the tag then, so nothing is removed from them
                    "UPDATE decisions SET made_at = ?, was_in_files = 0 "
                    "WHERE content = ? AND tag IS ? AND holds",
                    (line.made_at, content, tag),
                )
            run.outcome["decisions"] = self.imported.decisions = len(decisions)

    def _new_decision(self, line: DecisionLine) -> _NewDecision | None:
        """Return a decision to store, or None if the catalogue knows it or a later one applies."""
        tag = None if line.tag is None else tag_number(self.database, line.tag)
        content = add_content(self.database, line.content)
        is_known = self.database.row(
            "SELECT 1 FROM decisions WHERE content = ?1 AND tag IS ?2 "
            "AND (made_at = ?3 AND verdict = ?4 OR holds AND made_at >= ?3)",
            (content, tag, line.made_at, line.verdict),
        )
        return None if is_known else _NewDecision(content, tag, line)

    def _read_origin(self, line: DecisionLine) -> Origin:
        """Return the suggestion that a decision answered where it was exported."""
        kin = [(add_content(self.database, digest), share) for digest, share in line.kin]
        evidence = pack_evidence(kin, line.name_share, line.readout_share)
        return Origin(None, line.confidence, evidence)
