"""How a collection stands, in a few numbers."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.review import progress
from tagkin.catalogue.runs import PastRun
from tagkin.catalogue.runs import history as runs_of
from tagkin.catalogue.writes import tags_to_write, unfinished_writes

__all__ = ["Status", "count_photographs", "status_of"]

# on photographs that there are, or were: those on what one was before it was edited are copied
_DECIDED = (
    "SELECT count(*) FROM decisions d WHERE d.holds AND d.verdict = ? "
    "AND EXISTS (SELECT 1 FROM photographs p WHERE p.content = d.content)"
)


@dataclass(frozen=True)
class Status:
    """What there is, what was decided, and what is left to do."""

    root: str
    catalogue: str
    n_bytes: int
    n_photographs: int
    """Copies of a photograph count as one."""
    n_files: int
    """Photographs with all their copies."""
    n_untagged: int
    """Photographs that carry no tag."""
    n_problems: int
    """Photographs, or sidecars of them, that the last scan could not read."""
    n_gone: int
    """Photographs that were there once."""
    n_tags: int
    n_suggestions: int
    """That nobody has decided on."""
    n_to_review: int
    """Photographs that have such suggestions."""
    n_sure: int
    """Suggestions with a confidence of 90 % and more."""
    expected: float
    """How many of the suggestions are likely to be right."""
    n_accepted: int
    n_rejected: int
    n_to_write: int
    """Photographs whose files lack accepted tags."""
    n_unfinished: int
    """Writes that a run which was killed has left unfinished."""
    model: str | None
    """Fingerprint of the model; None where none was learned."""
    last_scan: PastRun | None
    last_train: PastRun | None

    def to_dict(self) -> dict[str, Any]:
        """The same as a plain dict, ready for JSON."""
        return asdict(self)


def count_photographs(catalogue: Catalogue) -> dict[str, int]:
    """Count photographs, their files, and those that are untagged.

    A photograph is untagged if it carries no tag: none in its files or in those of a copy, and none
    that you accepted. Tags that you rejected for it, or forgot, do not count. One that could not be
    read is neither.
    """
    n_photographs, n_unread, n_untagged = catalogue.rows(
        "SELECT count(*), (SELECT count(*) FROM photographs WHERE content IS NULL AND gone IS NULL)"
        ", coalesce(sum(n_tags = 0), 0) FROM contents c WHERE EXISTS "
        "(SELECT 1 FROM photographs WHERE content = c.id AND gone IS NULL)"
    )[0]
    return {
        "n_photographs": n_photographs + n_unread,
        "n_files": progress(catalogue).n_photographs,
        "n_untagged": n_untagged,
    }


def status_of(catalogue: Catalogue) -> Status:
    """How a collection stands."""
    now, counts = progress(catalogue), count_photographs(catalogue)
    last: dict[str, PastRun] = {}
    for run in runs_of(catalogue):
        if run.ended_at is not None:
            last.setdefault(run.what, run)
    trained = last.get("train") if catalogue.model_folder.is_dir() else None
    count = "SELECT count(*) FROM photographs WHERE "
    return Status(
        root=str(catalogue.root),
        catalogue=str(catalogue.path),
        n_bytes=_size(catalogue.path),
        **counts,
        n_problems=catalogue.value(count + "gone IS NULL AND problem IS NOT NULL"),
        n_gone=catalogue.value(count + "gone IS NOT NULL"),
        n_tags=catalogue.value(
            "SELECT count(*) FROM tags WHERE NOT forgotten AND n_found + n_accepted > 0"
        ),
        n_suggestions=now.n_suggestions,
        n_to_review=now.n_to_review,
        n_sure=catalogue.value("SELECT count(*) FROM suggestions WHERE confidence >= 0.9"),
        expected=now.expected,
        n_accepted=catalogue.value(_DECIDED, (1,)),
        n_rejected=catalogue.value(_DECIDED, (-1,)),
        n_to_write=len(tags_to_write(catalogue)),
        n_unfinished=len(unfinished_writes(catalogue)),
        model=trained.model if trained else None,
        last_scan=last.get("scan"),
        last_train=last.get("train"),
    )


def _size(path: Path) -> int:
    """Of a catalogue, with what SQLite has not yet moved into its file."""
    there = [one for one in (path, path.with_name(f"{path.name}-wal")) if one.exists()]
    return sum(os.path.getsize(one) for one in there)
