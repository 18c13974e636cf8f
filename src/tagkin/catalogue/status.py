"""The status of a collection, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from tagkin.catalogue.collection_model import CollectionModel
from tagkin.catalogue.completeness import Completeness
from tagkin.catalogue.database import Database
from tagkin.catalogue.edits import list_to_confirm
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.photographs import Photographs, incomplete_folders
from tagkin.catalogue.runs import PastRun, Runs
from tagkin.catalogue.suggestions import Suggestions
from tagkin.catalogue.write_records import Writes

__all__ = ["Status", "read_status"]

# decisions on former contents of edited photographs are copies
_DECIDED = (
    "SELECT count(*) FROM decisions d WHERE d.holds AND d.verdict = ? AND d.tag IS NOT NULL "
    "AND EXISTS (SELECT 1 FROM photographs p WHERE p.content = d.content)"
)


@dataclass(frozen=True)
class Status:
    """The state of a collection: photographs, tags, decisions and remaining work."""

    root: str
    catalogue: str
    n_bytes: int
    n_photographs: int
    """Copies of a photograph count once."""
    n_files: int
    """Photographs with all their copies."""
    n_untagged: int
    """Photographs without tags."""
    n_problems: int
    """Photographs that the last scan could not read, or whose sidecars it could not read."""
    n_gone: int
    """Photographs that no longer exist."""
    n_tags: int
    n_suggestions: int
    """Open suggestions."""
    n_to_review: int
    """Photographs that have open suggestions."""
    n_sure: int
    """Suggestions with a confidence of at least 90 %."""
    expected: float
    """How many of the suggestions are likely correct."""
    n_accepted: int
    n_rejected: int
    n_finished: int
    """Finished photographs."""
    incomplete_folders: list[str]
    """Folders, from the root, whose tags are declared incomplete; "" is the whole collection."""
    n_to_write: int
    """Photographs whose files lack accepted tags."""
    to_confirm: list[str]
    """Photographs, from the root, that may be others now, so the decisions on them wait."""
    n_to_remove: int
    """Sidecars with rejected tags, which `tagkin write --remove` removes."""
    n_to_remove_embedded: int
    """Photographs with rejected tags inside, which it removes with ``--embed``."""
    n_unfinished: int
    """Unfinished writes of killed runs."""
    model: str | None
    """Fingerprint of the model; None without a model."""
    last_scan: PastRun | None
    last_train: PastRun | None
    last_suggest: PastRun | None


def read_status(database: Database) -> Status:
    """Return the status of a collection."""
    progress, runs = Suggestions(database).progress(), Runs(database)
    removals, _ = Writes(database).pending_removals(Filters(), embed=True)
    files = {file for photo in removals for file in photo.removals}
    n_sidecars = sum(file.lower().endswith(".xmp") for file in files)
    log = database.path.with_name(f"{database.path.name}-wal")
    return Status(
        root=str(database.root),
        catalogue=str(database.path),
        n_bytes=sum(file.stat().st_size for file in (database.path, log) if file.exists()),
        **Photographs(database).count()._asdict(),
        n_gone=database.value("SELECT count(*) FROM photographs WHERE gone IS NOT NULL"),
        n_tags=database.value(
            "SELECT count(*) FROM tags WHERE NOT forgotten AND n_found + n_accepted > 0"
        ),
        n_suggestions=progress.n_suggestions,
        n_to_review=progress.n_to_review,
        n_sure=database.value(  # ranges of an index, because there may be millions
            "SELECT count(*) FROM tags t CROSS JOIN suggestions s ON s.tag = t.id "
            "WHERE t.n_suggested > 0 AND s.confidence >= 0.9"
        ),
        expected=progress.expected,
        n_accepted=database.value(_DECIDED, (1,)),
        n_rejected=database.value(_DECIDED, (-1,)),
        n_finished=Completeness(database).count_finished(),
        incomplete_folders=incomplete_folders(database),
        n_to_write=Writes(database).count_pending(),
        to_confirm=list_to_confirm(database),
        n_to_remove=n_sidecars,
        n_to_remove_embedded=len(files) - n_sidecars,
        n_unfinished=len(Writes(database).unfinished()),
        model=CollectionModel(database).fingerprint(),
        last_scan=runs.last_ended("scan"),
        last_train=runs.last_ended("train"),
        last_suggest=runs.last_ended("suggest"),
    )
