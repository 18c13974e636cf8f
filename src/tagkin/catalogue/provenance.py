"""Who says so: for every tag of a photograph, the file, the run or the person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.evidence import unpack_evidence
from tagkin.catalogue.filters import content_of
from tagkin.catalogue.review import Kin, kin_of_each
from tagkin.catalogue.texts import from_text
from tagkin.collection.sidecars import WrittenTag, provenance_of
from tagkin.errors import SidecarError

__all__ = ["Explained", "Said", "TagProvenance", "explain_photograph"]

_VERDICTS = {1: "accepted", -1: "rejected"}


@dataclass(frozen=True)
class Said:
    """One who says something of a tag."""

    who: str
    """file, run, person or write."""
    text: str
    """The same as a sentence."""
    when: str | None = None
    file: str | None = None
    """Where it stands, or was written to, from the root."""
    run: int | None = None
    model: str | None = None
    """Fingerprint of the model that suggested it."""
    confidence: float | None = None
    verdict: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class TagProvenance:
    """A tag of a photograph, and all who said something of it, in the order of time."""

    tag: str
    state: str
    """found, accepted, rejected or suggested."""
    confidence: float | None
    said: Sequence[Said]
    kin: Sequence[Kin]
    name_share: float | None = None
    readout_share: float | None = None
    """See `tagkin.catalogue.evidence.Evidence`."""


@dataclass(frozen=True)
class Explained:
    """What is known of a photograph."""

    path: str
    digest: str
    tags: Sequence[TagProvenance]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists, ready for JSON; what nobody said is left out."""

        def plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            return {name: value for name, value in pairs if value is not None}

        found: dict[str, Any] = asdict(self, dict_factory=plain)
        for tag, one in zip(found["tags"], self.tags, strict=True):
            tag["kin"] = [kin._asdict() for kin in one.kin]
        return found


def explain_photograph(catalogue: Catalogue, path: str) -> Explained:
    """Tell of every tag of a photograph who says so.

    Parameters
    ----------
    catalogue : Catalogue
    path : str
        Of the photograph, from the root.
    """
    content = content_of(catalogue, path)
    digest = catalogue.value("SELECT digest FROM contents WHERE id = ?", (content,))
    said: dict[str, list[Said]] = {}
    states: dict[str, str] = {}
    behind: dict[str, tuple[float | None, bytes | None]] = {}
    found = _found(catalogue, content)
    for tag, places, file in found:
        states[tag] = "found"
        said.setdefault(tag, []).extend(_of_file(word, place, file) for word, place in places)
    for tag, confidence, evidence, one in _open(catalogue, content):
        states.setdefault(tag, "suggested")
        behind[tag] = confidence, evidence
        said.setdefault(tag, []).append(one)
    for tag, verdict, holds, confidence, evidence, each in _decided(catalogue, content):
        said.setdefault(tag, []).extend(each)
        if holds:
            states[tag] = _VERDICTS[verdict]
            behind[tag] = confidence, evidence
    written = _written(catalogue, content)
    for tag, one in [*_written_before(catalogue, found, written), *written]:
        said.setdefault(tag, []).append(one)
    order = ("found", "accepted", "suggested", "rejected")
    names = sorted(states, key=lambda tag: (order.index(states[tag]), tag))
    each = [unpack_evidence(behind.get(tag, (None, None))[1]) for tag in names]
    kin = kin_of_each(catalogue, [one.kin for one in each])
    tags = [
        TagProvenance(
            tag,
            states[tag],
            behind.get(tag, (None, None))[0],
            said[tag],
            some,
            one.name_share,
            one.readout_share,
        )
        for tag, some, one in zip(names, kin, each, strict=True)
    ]
    return Explained(path, digest.hex(), tags)


def _found(catalogue: Catalogue, content: int) -> list[tuple[str, list[Any], str]]:
    rows = catalogue.rows(
        "SELECT t.name, f.places, p.path FROM photographs p JOIN found f ON f.photograph = p.id "
        "JOIN tags t ON t.id = f.tag WHERE p.content = ? AND p.gone IS NULL ORDER BY p.path, t.id",
        (content,),
    )
    return [(name, from_text(places, list), path) for name, places, path in rows]


def _of_file(word: str, place: str, photograph: str) -> Said:
    file = place or photograph
    text = f"stands in {file}"
    return Said("file", text, file=file, note=word or None)


def _written_before(
    catalogue: Catalogue,
    found: Sequence[tuple[str, list[Any], str]],
    written: Sequence[tuple[str, Said]],
) -> list[tuple[str, Said]]:
    """Tags that are marked as tagkin's in sidecars, of whose writing this catalogue knows nothing.

    It was made again since, or the files come from elsewhere. Whose run it was, nobody knows.
    """
    known = {(tag, said.file) for tag, said in written}
    marked: dict[str, list[WrittenTag]] = {}
    each = []
    for tag, places, _ in found:
        for word, file in places:
            if not file.lower().endswith(".xmp") or (tag, file) in known:
                continue
            if file not in marked:
                marked[file] = _marked(catalogue.absolute(file))
            for one in marked[file]:
                if one.tag in (tag, word):
                    each.append((tag, _by_earlier_run(one, file)))
    return each


def _marked(file: str) -> list[WrittenTag]:
    try:
        return provenance_of(Path(file).read_bytes())
    except (OSError, SidecarError):  # changed since the last scan, which told it
        return []


def _by_earlier_run(one: WrittenTag, file: str) -> Said:
    sure = "" if one.confidence is None else f", {100 * one.confidence:.0f} % confidence"
    text = f"written to {file} by run {one.run} of an earlier catalogue, as the file says{sure}"
    return Said("write", text, None, file, confidence=one.confidence)


def _suggested(run: int, when: str, model: str | None, confidence: float | None) -> Said:
    by = f" with model {model[:12]}" if model else ""
    sure = "" if confidence is None else f", {100 * confidence:.0f} % confidence"
    return Said("run", f"suggested by run {run}{by}{sure}", when, None, run, model, confidence)


def _open(catalogue: Catalogue, content: int) -> list[tuple[str, float | None, bytes | None, Said]]:
    rows = catalogue.rows(
        "SELECT t.name, s.confidence, s.evidence, r.id, r.started_at, r.model FROM suggestions s "
        "JOIN tags t ON t.id = s.tag JOIN runs r ON r.id = s.run WHERE s.content = ?",
        (content,),
    )
    return [
        (tag, confidence, evidence, _suggested(run, when, model, confidence))
        for tag, confidence, evidence, run, when, model in rows
    ]


def _decided(catalogue: Catalogue, content: int) -> list[tuple[Any, ...]]:
    """Decisions, each after the run that suggested the tag."""
    rows = catalogue.rows(
        "SELECT t.name, d.verdict, d.holds, d.confidence, d.evidence, d.made_at, d.run, d.note, "
        "d.taken_back_by, r.id, r.started_at, r.model FROM decisions d JOIN tags t ON t.id = d.tag "
        "LEFT JOIN runs r ON r.id = d.suggested_by WHERE d.content = ? ORDER BY d.id",
        (content,),
    )
    found = []
    suggested: set[tuple[str, int]] = set()
    for tag, verdict, holds, confidence, evidence, when, run, note, back, by, began, model in rows:
        each = []
        if by is not None and (tag, by) not in suggested:
            suggested.add((tag, by))
            each.append(_suggested(by, began, model, confidence))
        name = _VERDICTS[verdict]
        remark = f": {note}" if note else ""
        text = f"{name} by you (run {run}){remark}"
        if back is not None:
            text = f"{name} by you (run {run}), taken back by run {back}{remark}"
        each.append(Said("person", text, when, None, run, verdict=name, note=note))
        found.append((tag, verdict, holds, confidence, evidence, each))
    return found


def _written(catalogue: Catalogue, content: int) -> list[tuple[str, Said]]:
    rows = catalogue.rows(
        "SELECT one.value, w.file, w.run, r.started_at, w.state FROM photographs p "
        "JOIN writes w ON w.photograph = p.id JOIN runs r ON r.id = w.run, json_each(w.tags) one "
        "WHERE p.content = ? AND w.state IN ('done', 'undone') ORDER BY w.id",
        (content,),
    )
    return [
        (
            tag,
            Said(
                "write",
                f"written to {file} by run {run}{' and undone' * (state == 'undone')}",
                when,
                file,
                run,
            ),
        )
        for tag, file, run, when, state in rows
    ]
