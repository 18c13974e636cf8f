"""Where each tag of a photograph comes from: a file, a run or a person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tagkin.catalogue.columns import read_json, unpack_evidence
from tagkin.catalogue.completeness import Completeness
from tagkin.catalogue.database import HAS_FILE, LISTED, Database, as_list
from tagkin.catalogue.decision_records import REMOVED
from tagkin.catalogue.known_catalogues import server_name
from tagkin.catalogue.moment_index import MomentIndex
from tagkin.catalogue.photographs import Photographs
from tagkin.catalogue.suggestions import StoredKin, locate_kin, select_kin
from tagkin.collection.facts import Facts
from tagkin.collection.sidecars import WrittenTag, provenance_of
from tagkin.errors import SidecarError

__all__ = ["Explained", "TagProvenance", "TagSource", "explain_photograph"]

_RUN = re.compile(r" by run \d+(?: with model [0-9a-f]+)?| \((?:seen by )?run \d+\)")
_NEAR = 2 * 3600.0  # seconds
_VERDICTS = {1: "accepted", -1: "rejected"}
_STATES = ("found", "accepted", "suggested", "rejected")  # in the order of the answer


@dataclass(frozen=True)
class TagSource:
    """A file, run or person that a tag comes from."""

    who: str
    """file, run, person or write."""
    text: str
    """The source in words."""
    when: str | None = None
    file: str | None = None
    """The file with the tag, from the root."""
    run: int | None = None
    model: str | None = None
    """Fingerprint of the model that suggested it."""
    confidence: float | None = None
    verdict: str | None = None
    note: str | None = None

    @property
    def brief(self) -> str:
        """The source in words, without the numbers of runs and models."""
        return _RUN.sub("", self.text)


@dataclass
class TagProvenance:
    """A tag of a photograph with its sources, in order of time."""

    tag: str
    state: str = ""
    """found, accepted, rejected or suggested; empty if only undone decisions and writes name it."""
    confidence: float | None = None
    said: list[TagSource] = field(default_factory=list)
    kin: Sequence[StoredKin] = ()
    """Kin with at least 2 % of the score, and their shares of it."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """See `tagkin.catalogue.columns.StoredEvidence`."""
    n_near_with: int = 0
    """How many photographs that were taken within two hours have it."""


@dataclass(frozen=True)
class Explained:
    """A photograph and the provenance of its tags."""

    path: str
    digest: str
    facts: Facts
    """When, where and with what it was taken."""
    tags: Sequence[TagProvenance]
    n_near: int
    """Tagged photographs that were taken within two hours, without this one."""
    finished: TagSource | None = None
    """Who finished it, so other tags are wrong; None if it is not finished."""


class _Tags(dict[str, TagProvenance]):
    """The tags of a photograph by name, and the evidence for them."""

    def __init__(self) -> None:
        self.evidence: dict[str, bytes | None] = {}

    def __missing__(self, name: str) -> TagProvenance:
        return self.setdefault(name, TagProvenance(name))


def explain_photograph(database: Database, path: str, moments: MomentIndex) -> Explained:
    """Return where each tag of a photograph comes from, by its path from the root."""
    photographs = Photographs(database)
    content = photographs.content_of(path)
    digest = database.value("SELECT digest FROM contents WHERE id = ?", (content,))
    tags = _Tags()
    in_files = _tags_in_files(database, content)
    server = server_name(database.root)
    for name, places, photograph in in_files:
        tags[name].state = "found"
        for word, place in places:
            file = place or photograph
            is_file = place != server
            source = TagSource(
                "file", f"is in {file}", file=file if is_file else None, note=word or None
            )
            tags[name].said.append(source)
    _add_suggestions(database, content, tags)
    _add_decisions(database, content, tags)
    written = _writes(database, content)
    for name, source in [*_earlier_writes(database, in_files, written), *written]:
        tags[name].said.append(source)
    known = [tag for tag in tags.values() if tag.state]
    known.sort(key=lambda tag: (_STATES.index(tag.state), tag.tag))
    evidence = [unpack_evidence(tags.evidence.get(tag.tag)) for tag in known]
    kin_lists = locate_kin(database, [stored.kin for stored in evidence])
    for tag, kin, stored in zip(known, kin_lists, evidence, strict=True):
        tag.kin, tag.shares = select_kin(kin), stored.shares
    near = moments.near(content, _NEAR)
    n_near, n_with = count_tagged(database, near), count_tags(database, near)
    for tag in known:
        tag.n_near_with = n_with.get(tag.tag, 0)
    facts, finished = photographs.facts_of(content), _read_finished(database, content)
    return Explained(path, digest.hex(), facts, known, n_near, finished)


def count_tagged(database: Database, contents: Sequence[int]) -> int:
    """Return how many of some contents have a photograph and a tag."""
    query = f"SELECT count(*) FROM contents c WHERE n_tags > 0 AND id {LISTED} AND "
    return int(database.value(query + HAS_FILE.format("c.id"), (as_list(contents),)))


def count_tags(database: Database, contents: Sequence[int]) -> dict[str, int]:
    """Return on how many of some contents each tag is, in files or accepted."""
    listed = f"content {LISTED}"
    rows = database.rows(
        "SELECT t.name, count(*) FROM ("
        "SELECT p.content, f.tag FROM photographs p JOIN found f ON f.photograph = p.id "
        f"WHERE p.gone IS NULL AND p.{listed} "
        f"UNION SELECT content, tag FROM decisions WHERE holds AND verdict = 1 AND {listed} "
        f"EXCEPT SELECT content, tag FROM decisions WHERE holds AND verdict = -1 AND {listed}"
        ") JOIN tags t ON t.id = tag WHERE NOT t.forgotten GROUP BY t.name",
        (as_list(contents),) * 3,
    )
    return dict(rows)


def _read_finished(database: Database, content: int) -> TagSource | None:
    row = Completeness(database).run_that_finished(content)
    if row is None:
        return None
    run, when, _ = row
    return TagSource("person", f"finished by you (run {run})", when, None, run)


def _tags_in_files(database: Database, content: int) -> list[tuple[str, list[list[str]], str]]:
    rows = database.rows(
        "SELECT t.name, f.places, p.path FROM photographs p JOIN found f ON f.photograph = p.id "
        "JOIN tags t ON t.id = f.tag WHERE p.content = ? AND p.gone IS NULL ORDER BY p.path, t.id",
        (content,),
    )
    return [(name, read_json(places, list), path) for name, places, path in rows]


def _add_suggestions(database: Database, content: int, tags: _Tags) -> None:
    for name, confidence, evidence, run, when, model in database.rows(
        "SELECT t.name, s.confidence, s.evidence, r.id, r.started_at, r.model FROM suggestions s "
        "JOIN tags t ON t.id = s.tag JOIN runs r ON r.id = s.run WHERE s.content = ?",
        (content,),
    ):
        tag = tags[name]
        tag.state = tag.state or "suggested"
        tag.confidence, tags.evidence[name] = confidence, evidence
        tag.said.append(_suggesting_run(run, when, model, confidence))


def _add_decisions(database: Database, content: int, tags: _Tags) -> None:
    """Add decisions, each after the run that suggested the tag."""
    suggested: set[tuple[str, int]] = set()
    for name, number, holds, confidence, evidence, when, run, note, undo, *by in database.rows(
        "SELECT t.name, d.verdict, d.holds, d.confidence, d.evidence, d.made_at, d.run, d.note, "
        "d.taken_back_by, r.id, r.started_at, r.model FROM decisions d JOIN tags t ON t.id = d.tag "
        "LEFT JOIN runs r ON r.id = d.suggested_by WHERE d.content = ? ORDER BY d.id",
        (content,),
    ):
        tag, verdict = tags[name], _VERDICTS[number]
        suggest_run, started_at, model = by
        if suggest_run is not None and (name, suggest_run) not in suggested:
            suggested.add((name, suggest_run))
            tag.said.append(_suggesting_run(suggest_run, started_at, model, confidence))
        if note and note.startswith(REMOVED):
            text = f"{note} (seen by run {run})"
            text += f", and added again (seen by run {undo})" if undo is not None else ""
        else:
            text = f"{verdict} by you (run {run})"
            text += f", undone by run {undo}" if undo is not None else ""
            text += f": {note}" if note else ""
        tag.said.append(TagSource("person", text, when, None, run, verdict=verdict, note=note))
        if holds:
            tag.state, tag.confidence, tags.evidence[name] = verdict, confidence, evidence


def _suggesting_run(run: int, when: str, model: str | None, confidence: float | None) -> TagSource:
    by = f" with model {model[:12]}" if model else ""
    text = f"suggested by run {run}{by}{_confidence_text(confidence)}"
    return TagSource("run", text, when, None, run, model, confidence)


def _confidence_text(confidence: float | None) -> str:
    return "" if confidence is None else f", {100 * confidence:.0f} % confidence"


def _writes(database: Database, content: int) -> list[tuple[str, TagSource]]:
    rows = database.rows(
        "SELECT tag.value, verb.value, w.file, w.run, r.started_at, w.state FROM photographs p "
        "JOIN writes w ON w.photograph = p.id JOIN runs r ON r.id = w.run, "
        """json_each('["written to", "removed from"]') verb, """
        "json_each(iif(verb.key, w.removed_tags, w.tags)) tag "
        "WHERE p.content = ? AND w.state IN ('done', 'undone') ORDER BY w.id",
        (content,),
    )
    server = server_name(database.root)
    sources = []
    for tag, verb, file, run, when, state in rows:
        text = f"{verb} {server or file} by run {run}{' and undone' * (state == 'undone')}"
        sources.append((tag, TagSource("write", text, when, None if server else file, run)))
    return sources


def _earlier_writes(
    database: Database,
    in_files: Sequence[tuple[str, list[list[str]], str]],
    written: Sequence[tuple[str, TagSource]],
) -> list[tuple[str, TagSource]]:
    """Return writes that only the sidecars know of, because of another or a rebuilt catalogue."""
    known = {(name, source.file) for name, source in written}
    marks: dict[str, list[WrittenTag]] = {}
    sources = []
    for name, places, _ in in_files:
        for word, file in places:
            if not file.lower().endswith(".xmp") or (name, file) in known:
                continue
            if file not in marks:
                marks[file] = _read_provenance(database.absolute(file))
            for mark in marks[file]:
                if mark.tag in (name, word):
                    text = (
                        f"written to {file} by run {mark.run} of an earlier catalogue, as the file "
                        f"says{_confidence_text(mark.confidence)}"
                    )
                    source = TagSource("write", text, None, file, confidence=mark.confidence)
                    sources.append((name, source))
    return sources


def _read_provenance(file: str) -> list[WrittenTag]:
    try:
        return provenance_of(Path(file).read_bytes())
    except (OSError, SidecarError):  # it changed since the last scan
        return []
