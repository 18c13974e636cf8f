"""A person's statements about completeness: finished photographs and tags, incomplete folders.

Unless a person says otherwise, photographs with tags in files are complete, and other photographs
are not: see `tagkin.catalogue.photographs.TaggedContent`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tagkin.catalogue.database import (
    HAS_FILE,
    LISTED,
    CataloguePart,
    Database,
    as_list,
    set_fields,
    utc_now,
)
from tagkin.catalogue.decision_records import (
    FINISHED,
    REJECTED,
    TAG_FINISHED,
    decide_suggestions,
    store_decision,
)
from tagkin.catalogue.decisions import Decided, decided_by
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.photographs import Photographs, folders_of, incomplete_folders
from tagkin.catalogue.tag_records import IN_FILES
from tagkin.catalogue.tags import Tags
from tagkin.errors import InvalidInput

__all__ = ["Completeness", "Declared", "store_incomplete"]

_PHOTOGRAPH = "the photograph is finished"


class Declared(NamedTuple):
    """A folder whose tags a person declared incomplete."""

    run: int | None
    """The run, which can be undone; None if it was declared before."""
    folder: str
    """From the root; empty for the whole collection."""
    n_photographs: int
    """Photographs that no longer count as complete."""


class Completeness(CataloguePart):
    """A person's statements about completeness: ``catalogue.completeness``."""

    # --- finishing -----------------------------------------------------------------------

    def finish(self, filters: Filters) -> Decided:
        """Finish the photographs that match or, if the filters name tags, these tags on them.

        A finished photograph has its tags and no others: its open suggestions are rejected, and
        there are none until this is undone. Finishing a tag rejects it on each photograph that
        neither has it nor has a decision on it; photographs that come later are not affected.
        """
        place, values = filters.sql_place()
        contents = self._db.column(
            "SELECT DISTINCT p.content FROM photographs p "
            f"WHERE p.gone IS NULL AND p.content IS NOT NULL AND {place}",
            values,
        )
        parameters = set_fields(vars(filters))
        if filters.tags:
            return self._finish_tags(Tags(self._db).find(filters.tags), contents, parameters)
        return self._finish_photographs(contents, parameters)

    def tagged_in_files(self) -> list[int]:
        """Return the contents that count as complete by tags in files that nobody accepted."""
        contents = self._db.column(
            "SELECT id FROM contents c WHERE n_tags > (SELECT count(DISTINCT t.key) "
            "FROM decisions d JOIN tags t ON t.id = d.tag WHERE d.content = c.id AND d.holds "
            "AND d.verdict = 1 AND NOT t.forgotten)"
        )
        incomplete = {folder.strip("/") for folder in incomplete_folders(self._db)}
        if not incomplete:
            return contents
        rows = self._db.rows(
            "SELECT p.content, p.path FROM photographs p WHERE p.content IS NOT NULL "
            "AND EXISTS (SELECT 1 FROM found f WHERE f.photograph = p.id)"
        )
        complete = {content for content, path in rows if incomplete.isdisjoint(folders_of(path))}
        return [content for content in contents if content in complete]

    def finish_photographs(self, contents: Sequence[int]) -> Decided:
        """Finish photographs, by their contents."""
        files = Photographs(self._db).files_of(contents)
        if missing := len(set(contents) - set(files)):
            raise InvalidInput(
                f"{missing:,} of {len(contents):,} photographs are not in the catalogue."
            )
        return self._finish_photographs(list(files), None)

    def finish_tag(self, tag: int) -> Decided:
        """Finish a tag on all photographs, by its number."""
        counts = Tags(self._db).count(tag)
        return self.finish(Filters(tags=[counts.name]))

    def _finish_photographs(
        self, contents: Sequence[int], parameters: Mapping[str, object] | None
    ) -> Decided:
        with self._db.transaction():
            new = self._db.column(
                f"SELECT value FROM json_each(?) WHERE NOT {FINISHED.format('value')}",
                (as_list(contents),),
            )
            if not new:
                return Decided(None, [])
            with self._db.run("finish", parameters) as run:
                matching, values = f"s.content {LISTED}", (as_list(new),)
                decide_suggestions(self._db, matching, values, run.id, REJECTED, _PHOTOGRAPH)
                for content in new:
                    store_decision(self._db, run.id, (content, None), REJECTED)
                each = decided_by(self._db, run.id)
                run.outcome |= {"photographs": len(new), "decisions": len(each)}
        files = Photographs(self._db).files_of(new)
        return Decided(run.id, each, finished=sorted(file.path for file in files.values()))

    def _finish_tags(
        self, tags: Sequence[int], contents: Sequence[int], parameters: Mapping[str, object]
    ) -> Decided:
        values = as_list(tags), as_list(contents)
        unknown = (
            "FROM tags t JOIN json_each(?2) c "
            "WHERE t.id IN (SELECT value FROM json_each(?1)) AND NOT EXISTS "
            "(SELECT 1 FROM decisions d WHERE d.content = c.value AND d.tag = t.id AND d.holds) "
            f"AND NOT {IN_FILES.format('c.value', 't.id')}"
        )
        with self._db.transaction():
            if self._db.row(f"SELECT 1 {unknown} LIMIT 1", values) is None:
                return Decided(None, [])
            with self._db.run("finish", parameters) as run:
                matching = f"s.tag {LISTED} AND s.content {LISTED}"
                decide_suggestions(self._db, matching, values, run.id, REJECTED, TAG_FINISHED)
                self._db.execute(
                    "INSERT INTO decisions (content, tag, run, verdict, made_at, note) "
                    f"SELECT c.value, t.id, ?3, ?4, ?5, ?6 {unknown}",
                    (*values, run.id, REJECTED, utc_now(), TAG_FINISHED),
                )
                each = decided_by(self._db, run.id)
                run.outcome["decisions"] = len(each)
        return Decided(run.id, each)

    def count_finished(self) -> int:
        """Count the finished photographs that exist."""
        n: int = self._db.value(
            "SELECT count(*) FROM decisions d WHERE d.tag IS NULL AND d.holds "
            f"AND {HAS_FILE.format('d.content')}"
        )
        return n

    def run_that_finished(self, content: int) -> tuple[int, str, int] | None:
        """Return the run that finished a photograph, when, and how many photographs it finished.

        None if the photograph is not finished.
        """
        return self._db.row(
            "SELECT d.run, d.made_at, (SELECT count(*) FROM decisions o WHERE o.run = d.run "
            "AND o.tag IS NULL AND o.holds) "
            "FROM decisions d WHERE d.content = ? AND d.tag IS NULL AND d.holds",
            (content,),
        )

    # --- incomplete folders ----------------------------------------------------------------

    def declare_incomplete(self, folder: str = "") -> Declared:
        """Declare that tags in files are not complete in a folder, or in the whole collection.

        There, a tag that a photograph does not have is unknown, even on photographs that come
        later.
        """
        photographs = Photographs(self._db)
        if folder in incomplete_folders(self._db):
            return Declared(None, folder, 0)
        before = sum(content.is_complete for content in photographs.with_tags())
        run = store_incomplete(self._db, folder)
        after = sum(content.is_complete for content in photographs.with_tags())
        return Declared(run, folder, before - after)


def store_incomplete(database: Database, folder: str) -> int:
    """Declare a folder, from the root, incomplete; return the run, which is the declaration."""
    with database.run("incomplete", {"folder": folder} if folder else None) as run:
        return run.id
