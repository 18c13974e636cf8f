"""The photographs of a collection: by path, content or tag, with the tags that they have.

A content is one file's bytes; its copies are the same photograph.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tagkin.catalogue.columns import sql_text
from tagkin.catalogue.database import (
    ALL,
    HAS_FILE,
    LISTED,
    CataloguePart,
    Database,
    SqlValue,
    as_list,
)
from tagkin.catalogue.decision_records import IN_BULK, IS_ANSWER
from tagkin.catalogue.runs import Runs
from tagkin.collection.facts import Facts, stored_facts
from tagkin.collection.levels import fold, last_level
from tagkin.errors import InvalidInput, NotFound
from tagkin.labels import normalize_tag

__all__ = [
    "COUNT_FILES",
    "ContentFile",
    "PhotographCounts",
    "Photographs",
    "TaggedContent",
    "add_content",
    "folders_of",
    "in_folder",
    "incomplete_folders",
    "path_of",
]

COUNT_FILES = (
    "(SELECT count(*) FROM photographs) - (SELECT count(*) FROM photographs WHERE gone IS NOT NULL)"
)
"""SQL: the number of existing photographs with copies, from indices alone."""


class ContentFile(NamedTuple):
    """A content and a photograph that has it."""

    content: int
    path: str
    """From the root."""
    digest: str


class PhotographCounts(NamedTuple):
    """Numbers of existing photographs."""

    n_photographs: int
    """Copies of a photograph count once."""
    n_files: int
    n_untagged: int
    """Readable ones without a tag in files or an accepted one; forgotten tags do not count."""
    n_problems: int
    """Files that the last scan could not read."""


class TaggedContent(NamedTuple):
    """A content, a photograph that has it, and its tags."""

    content: int
    digest: str
    file: str
    """Absolute path."""
    tags: list[str]
    """In files or accepted, and neither rejected nor forgotten."""
    rejected: list[str]
    accepted: Sequence[str] = ()
    """The tags that were suggested and accepted, not in bulk."""
    is_complete: bool = True
    """Whether a person has tagged it: it is finished, or it has tags in files that were neither
    accepted here nor declared incomplete. Otherwise, undecided tags are unknown."""
    bulk: Sequence[str] = ()
    """The tags that were accepted in bulk, by confidence: nobody looked at each."""
    is_answered: bool = False
    """Whether a person rejected a tag for it, or finished it. Finishing a tag on all photographs
    does not count, because nobody looked at each."""

    @property
    def known_tags(self) -> list[str]:
        """The tags to learn from. Tags that were accepted in bulk teach a model nothing new."""
        if self.is_complete:
            return self.tags
        return [tag for tag in self.tags if tag not in self.bulk]


class _Decided(NamedTuple):
    """A decision on a tag of a content."""

    tag: str
    is_accepted: int
    was_suggested: int
    in_bulk: int
    is_answer: int


class Photographs(CataloguePart):
    """The photographs of a catalogue: ``catalogue.photographs``."""

    def content_of(self, path: str) -> int:
        """Return the content of an existing photograph, by its path from the root."""
        row = self._db.row(
            "SELECT content, problem FROM photographs "
            "WHERE path = CAST(? AS TEXT) AND gone IS NULL",
            (sql_text(path),),
        )
        if row is None:
            raise NotFound(f"{path} is not in the catalogue. Run `tagkin scan` to add it.")
        if row[0] is None:
            raise InvalidInput(f"The last scan could not read {path}: {row[1]}.")
        return int(row[0])

    def files_of(self, contents: Iterable[int]) -> dict[int, ContentFile]:
        """Return a file of each content, by content; missing contents are omitted."""
        rows = self._db.rows(
            "SELECT c.id, min(p.path), c.digest FROM contents c JOIN photographs p "
            "ON p.content = c.id AND p.gone IS NULL "
            f"WHERE c.id {LISTED} GROUP BY c.id",
            (as_list(contents),),
        )
        return {content: ContentFile(content, path, digest.hex()) for content, path, digest in rows}

    def facts_of(self, content: int) -> Facts:
        """Return when, where and with what a photograph was taken; see `tagkin.collection.facts`.

        The facts of copies differ only by their sidecars; those of the first path count.
        """
        names = [fact.name for fact in stored_facts()]
        row = self._db.row(
            f"SELECT {', '.join(names)} FROM photographs WHERE content = ? AND gone IS NULL "
            "ORDER BY path LIMIT 1",
            (content,),
        )
        pairs = zip(names, row or [None] * len(names), strict=True)
        return {name: value for name, value in pairs if value is not None}

    def contents_after(self, content: int, n: int) -> list[int]:
        """Return the next `n` contents by number."""
        query = "SELECT id FROM contents WHERE id > ? ORDER BY id LIMIT ?"
        return self._db.column(query, (content, n))

    def tagged(self) -> list[int]:
        """Return the contents that have a tag, in files or accepted."""
        return self._db.column("SELECT id FROM contents WHERE n_tags > 0")

    def with_tag(self, tag: int) -> list[int]:
        """Return the contents that have a tag, in files or accepted."""
        return self._db.column(
            "SELECT p.content FROM found f JOIN photographs p ON p.id = f.photograph "
            "WHERE f.tag = ?1 AND p.content IS NOT NULL UNION "
            "SELECT content FROM decisions WHERE tag = ?1 AND verdict = 1 AND holds",
            (tag,),
        )

    def count(self) -> PhotographCounts:
        """Count photographs, their files, untagged photographs and problems."""
        n_readable, n_unread, n_files, n_untagged, n_problems = self._db.rows(
            "SELECT (SELECT count(DISTINCT content) FROM photographs WHERE gone IS NULL), "
            "(SELECT count(*) FROM photographs WHERE content IS NULL AND gone IS NULL), "
            f"{COUNT_FILES}, (SELECT count(*) FROM contents c WHERE n_tags = 0 "
            f"AND {HAS_FILE.format('c.id')}), "
            "(SELECT count(*) FROM photographs WHERE gone IS NULL AND problem IS NOT NULL)"
        )[0]
        return PhotographCounts(n_readable + n_unread, n_files, n_untagged, n_problems)

    # --- tags ----------------------------------------------------------------------------

    def with_tags(
        self, *, folder: str | None = None, only_untagged: bool = False
    ) -> list[TaggedContent]:
        """Return every existing content with its current tags; a folder is named from the root."""
        full_names = self._full_names()

        def one_each(names: Iterable[str]) -> list[str]:
            return list(dict.fromkeys(full_names.get(name, name) for name in names))

        tags = self._db.groups(
            "SELECT DISTINCT p.content, t.name FROM found f JOIN photographs p "
            "ON p.id = f.photograph JOIN tags t ON t.id = f.tag "
            "WHERE p.content IS NOT NULL AND NOT t.forgotten "
            "UNION SELECT d.content, t.name FROM decisions d JOIN tags t ON t.id = d.tag "
            "WHERE d.holds AND d.verdict = 1 AND NOT t.forgotten"
        )
        decided: dict[int, list[_Decided]] = {}
        for content, *decision in self._db.rows(
            "SELECT d.content, t.name, d.verdict > 0, d.confidence IS NOT NULL, "
            f"{IN_BULK}, {IS_ANSWER} FROM decisions d JOIN tags t ON t.id = d.tag "
            "WHERE d.holds ORDER BY d.content, t.name"
        ):
            decided.setdefault(content, []).append(_Decided(*decision))
        query = "SELECT content FROM decisions WHERE tag IS NULL AND holds"
        finished = set(self._db.column(query))
        incomplete = {folder.strip("/") for folder in incomplete_folders(self._db)}
        in_files = self._db.rows(
            "SELECT p.content, p.path FROM photographs p "
            "WHERE EXISTS (SELECT 1 FROM found f WHERE f.photograph = p.id)"
        )
        complete = {c for c, path in in_files if incomplete.isdisjoint(folders_of(path))}
        rows = self._db.rows(
            "SELECT c.id, c.digest, min(p.path) FROM photographs p "
            "JOIN contents c ON c.id = p.content WHERE p.gone IS NULL "
            f"AND (NOT ? OR c.n_tags = 0) AND {in_folder('p.path', folder)} "
            "GROUP BY c.id ORDER BY min(p.path)",
            (only_untagged,),
        )
        contents = []
        for content, digest, path in rows:
            yes = [d for d in decided.get(content, ()) if d.is_accepted]
            no = [d for d in decided.get(content, ()) if not d.is_accepted]
            accepted = {fold(d.tag) for d in yes}
            rejected = {fold(d.tag) for d in no} - accepted
            own = one_each(name for name in tags.get(content, ()) if fold(name) not in rejected)
            is_tagged = not set(map(fold, own)) <= set(map(fold, one_each(d.tag for d in yes)))
            looked_at = one_each(d.tag for d in yes if d.was_suggested and not d.in_bulk)
            contents.append(
                TaggedContent(
                    content,
                    digest.hex(),
                    self._db.absolute(path),
                    own,
                    rejected=[name for name in one_each(d.tag for d in no) if name not in own],
                    accepted=[name for name in looked_at if name in own],
                    is_complete=content in finished or (is_tagged and content in complete),
                    bulk=one_each(d.tag for d in yes if d.in_bulk),
                    is_answered=content in finished or any(d.is_answer for d in no),
                )
            )
        return contents

    def _full_names(self) -> dict[str, str]:
        """Return tags without levels that are one with a tag with levels: Auto, Verkehr|Auto.

        Only if exactly one tag with levels ends in it, as programs write both for one keyword.
        """
        names = self._db.column(
            "SELECT name FROM tags WHERE NOT forgotten AND same_as IS NULL "
            "AND n_found + n_accepted > 0"
        )
        deep: dict[str, list[str]] = {}
        for name in names:
            if "|" in name:
                deep.setdefault(normalize_tag(last_level(name)), []).append(name)
        ends = {name: deep.get(normalize_tag(name), ()) for name in names if "|" not in name}
        return {name: full[0] for name, full in ends.items() if len(full) == 1}

    def search(
        self,
        name: str = "",
        *,
        among: Sequence[int] | None = None,
        n: int = ALL,
        after: int = 0,
    ) -> list[tuple[int, str, ContentFile | None]]:
        """Find photographs: number, path, and content unless the last scan could not read it.

        `name` is in their paths from the root, in any case. `among` are the numbers of photographs,
        as `tagkin.catalogue.selection` selects them. A negative `n` finds all. `after` is the
        number of the last photograph of the previous page.
        """
        values: dict[str, SqlValue] = {"after": after, "n": n}
        conditions = ["p.gone IS NULL", "p.id > :after"]
        if name:
            conditions.append("p.path LIKE CAST(:name AS TEXT) ESCAPE '!'")  # ignores case
            values["name"] = sql_text("%" + re.sub("[!%_]", r"!\g<0>", name) + "%")
        if among is not None:
            conditions.append("p.id IN (SELECT value FROM json_each(:among))")
            values["among"] = as_list(among)
        rows = self._db.rows(
            "SELECT p.id, p.path, c.id, c.digest FROM photographs p "
            "LEFT JOIN contents c ON c.id = p.content "
            f"WHERE {' AND '.join(conditions)} ORDER BY p.id LIMIT :n",
            values,
        )
        return [
            (number, path, None if content is None else ContentFile(content, path, digest.hex()))
            for number, path, content, digest in rows
        ]


def add_content(database: Database, digest: bytes) -> int:
    """Return the number of a content, added if needed."""
    database.execute("INSERT OR IGNORE INTO contents (digest) VALUES (?)", (digest,))
    return int(database.value("SELECT id FROM contents WHERE digest = ?", (digest,)))


def path_of(database: Database, photograph: int, *, exists: bool = False) -> str | None:
    """Return the path of a photograph from the root; with `exists`, None if it is gone."""
    condition = " AND gone IS NULL" if exists else ""
    query = f"SELECT path FROM photographs WHERE id = ?{condition}"
    path: str | None = database.value(query, (photograph,))
    return path


def incomplete_folders(database: Database) -> list[str]:
    """Return the folders, from the root, whose tags a person declared incomplete."""
    folders = [
        run.parameters.get("folder", "") for run in Runs(database).list_standing("incomplete")
    ]
    return [folder for folder in folders if isinstance(folder, str)]


def folders_of(path: str) -> list[str]:
    """Return the folders, from the root, that a photograph is in; the root itself is empty."""
    return ["", *(path[:end] for end, char in enumerate(path) if char == "/")]


def in_folder(column: str, folder: str | None) -> str:
    """Return an SQL condition: the paths in a column are in a folder or its subfolders.

    The folder is named from the root, and need not be UTF-8. None allows all paths.
    """
    start = (folder or "").strip("/")
    if start in ("", "."):
        return "1"
    low, high = (os.fsencode(start + end).hex() for end in "/0")  # 0 comes after /
    return f"({column} > CAST(x'{low}' AS TEXT) AND {column} < CAST(x'{high}' AS TEXT))"
