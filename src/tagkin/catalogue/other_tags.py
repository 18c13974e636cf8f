"""Tags of other kinds than keywords: names of folders, places and people.

They have separate tables, and take no part in learning, suggestions and decisions. Their numbers
are larger than the numbers of keywords, so a search can take both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypedDict

from tagkin.catalogue.columns import read_json, sql_text
from tagkin.catalogue.database import Database, Part
from tagkin.catalogue.tags import Tags
from tagkin.collection.kinds import KINDS, Kinds, KindTag
from tagkin.collection.places import user_language
from tagkin.errors import InvalidInput, NotFound
from tagkin.labels import normalize_tag

__all__ = [
    "FIRST_OTHER",
    "KindChanges",
    "OtherTag",
    "OtherTags",
    "change_kinds",
    "only_deepest",
    "read_kind_settings",
    "replace_other_tags",
    "store_kind_settings",
]

FIRST_OTHER = 2**40
"""All tags of other kinds have larger numbers."""


class OtherTag(NamedTuple):
    """A tag of another kind than keyword."""

    id: int
    kind: str
    """folder, place or person."""
    name: str
    n_found: int
    """Photographs that have it."""
    file: str = ""
    """For a tag of a photograph, the file that has it, from the root; empty for its folder."""

    @property
    def text(self) -> str:
        """Where the tag of a photograph comes from, in words."""
        if self.kind == "folder":
            return "name of a folder"
        what = "named" if self.kind == "person" else "by the position"
        return f"{what} in {self.file}"


class OtherTags(Part):
    """The tags of other kinds in a catalogue: ``catalogue.other_tags``."""

    def list_all(self, kind: str) -> list[OtherTag]:
        """Return the tags of a kind, most photographs first."""
        if kind not in KINDS:
            raise InvalidInput(f"The kinds of tags are {', '.join(KINDS)}; found {kind!r}.")
        rows = self._db.rows(
            "SELECT id, kind, name, n_found FROM other_tags WHERE kind = ? AND n_found "
            "ORDER BY n_found DESC, key, name",
            (kind,),
        )
        return [OtherTag(*row) for row in rows]

    def name_and_kind(self, tag: int) -> tuple[str, str]:
        """Return the name and the kind of a tag of any kind, "keyword" among them."""
        if tag <= FIRST_OTHER:
            return Tags(self._db).count(tag).name, "keyword"
        row = self._db.row("SELECT name, kind FROM other_tags WHERE id = ?", (tag,))
        if row is None:
            raise NotFound(f"There is no tag with the number {tag}.")
        return row[0], row[1]

    def complete(self, text: str) -> list[OtherTag]:
        """Return tags for the text typed so far, as `Tags.complete` does."""
        rows = self._db.rows(
            "SELECT id, kind, name, n_found FROM other_tags WHERE instr(key, :text) AND n_found "
            "ORDER BY key <> :text, instr(key, :text) > 1, n_found DESC, key, name LIMIT 12",
            {"text": normalize_tag(text)},
        )
        return [OtherTag(*row) for row in rows]

    def of_content(self, content: int) -> list[OtherTag]:
        """Return the tags of a photograph and its copies, each once; of places the town alone."""
        rows = self._db.rows(
            "SELECT t.id, t.kind, t.name, t.n_found, coalesce(nullif(f.file, ''), p.path) "
            "FROM photographs p JOIN other_found f ON f.photograph = p.id "
            "JOIN other_tags t ON t.id = f.tag WHERE p.content = ? AND p.gone IS NULL "
            "GROUP BY t.id ORDER BY t.kind, t.name",
            (content,),
        )
        return only_deepest([OtherTag(*row) for row in rows])


def only_deepest(tags: Sequence[OtherTag]) -> list[OtherTag]:
    """Return the tags that are not a parent of another tag."""
    names = {(tag.kind, tag.name) for tag in tags}
    parents = {
        (kind, name.rsplit("|", n)[0])
        for kind, name in names
        for n in range(1, name.count("|") + 1)
    }
    return [tag for tag in tags if (tag.kind, tag.name) not in parents]


def replace_other_tags(database: Database, photograph: int, tags: Sequence[KindTag]) -> None:
    """Store the tags of other kinds that a photograph has; their files are from the root."""
    wanted = {_number_of(database, tag): tag.file for tag in tags}
    query = "SELECT tag, file FROM other_found WHERE photograph = ?"
    before: dict[int, str] = dict(database.rows(query, (photograph,)))
    for tag in before.keys() - wanted.keys():
        database.execute(
            "DELETE FROM other_found WHERE photograph = ? AND tag = ?", (photograph, tag)
        )
    for tag, file in wanted.items():
        if before.get(tag) != file:
            database.execute(
                "INSERT INTO other_found VALUES (?, ?, CAST(? AS TEXT)) "
                "ON CONFLICT (photograph, tag) DO UPDATE SET file = excluded.file",
                (photograph, tag, sql_text(file)),
            )


def _number_of(database: Database, tag: KindTag) -> int:
    name = tag.name.encode("utf-8", "replace").decode()
    query = "SELECT id FROM other_tags WHERE kind = ? AND name = ?"
    number: int | None = database.value(query, (tag.kind, name))
    if number is not None:
        return number
    return database.execute(
        "INSERT INTO other_tags (id, kind, name, key) "
        "SELECT max(?, coalesce(max(id), 0)) + 1, ?, ?, ? FROM other_tags",
        (FIRST_OTHER, tag.kind, name, normalize_tag(name)),
    )


# --- which kinds are read ----------------------------------------------------------------


def read_kind_settings(database: Database) -> Kinds:
    """Return which tags of other kinds the collection reads."""
    stored = read_json(database.value("SELECT kinds FROM collection"), dict)
    return Kinds(
        folders=str(stored.get("folders", "")),
        without=tuple(map(str, stored.get("without", ()))),
        places=str(stored.get("places", "")),
        people=bool(stored.get("people", False)),
    )


class KindChanges(TypedDict, total=False):
    """A person's changes of which tags of other kinds are read; None changes nothing."""

    folders: str | None
    """As in `tagkin.collection.kinds.Kinds`, or "none"."""
    without: Sequence[str] | None
    places: bool | None
    people: bool | None


def change_kinds(kinds: Kinds, changes: KindChanges) -> Kinds:
    """Return the settings with a person's changes.

    Places keep the language in which they were first asked for.
    """
    if (folders := changes.get("folders")) is not None:
        kinds = replace(kinds, folders="" if folders == "none" else folders)
    if (without := changes.get("without")) is not None:
        kinds = replace(kinds, without=tuple(without))
    if (places := changes.get("places")) is not None:
        kinds = replace(kinds, places=(kinds.places or user_language()) if places else "")
    if (people := changes.get("people")) is not None:
        kinds = replace(kinds, people=people)
    return kinds


def store_kind_settings(database: Database, kinds: Kinds) -> None:
    """Keep which kinds are read, for later scans."""
    database.execute("UPDATE collection SET kinds = ?", (json.dumps(kinds.to_dict()),))
