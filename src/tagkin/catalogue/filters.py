"""Which suggestions a person means: filters that compose."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.database import sql_text
from tagkin.errors import InvalidInput, NotFound
from tagkin.images.formats import suffixes_of_type
from tagkin.labels import normalize_tag

__all__ = ["Filters", "content_of", "in_folder", "tag_numbers"]


@dataclass(frozen=True)
class Filters:
    """What suggestions must have in common; each filter that is given narrows the choice."""

    tags: Sequence[str] = ()
    """One of these tags."""
    at_least: float | None = None
    """A confidence, from 0 to 1."""
    below: float | None = None
    """A confidence that is not reached."""
    run: int | None = None
    """The run that suggested them."""
    folder: str | None = None
    """A folder, from the root of the collection, with all that is in it."""
    photographs: Sequence[str] = ()
    """One of these photographs, by path from the root."""
    types: Sequence[str] = ()
    """One of these types of files, such as jpg, tif or raw."""

    @property
    def is_empty(self) -> bool:
        """Whether everything is meant."""
        return self == Filters()

    @property
    def names_pairs(self) -> bool:
        """Whether photographs and tags are named, and nothing else: suggested or not."""
        others = (self.at_least, self.below, self.run, self.types)
        return bool(self.photographs and self.tags) and others == (None, None, None, ())

    def to_dict(self) -> dict[str, Any]:
        """Those that are given, for the history."""
        given = {
            "tags": list(self.tags),
            "at_least": self.at_least,
            "below": self.below,
            "run": self.run,
            "folder": self.folder,
            "photographs": list(self.photographs),
            "types": list(self.types),
        }
        return {name: value for name, value in given.items() if value not in (None, [])}

    def conditions(
        self, catalogue: Catalogue, name: str, *, new_tags: bool = False
    ) -> tuple[str, list[Any]]:
        """The filters as a condition of SQL on a table of contents and tags, and its values.

        With `new_tags`, a tag that is not there yet is no mistake.
        """
        parts, values = ["1"], list[Any]()
        if self.tags:
            parts.append(f"{name}.tag IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(tag_numbers(catalogue, self.tags, may_be_new=new_tags)))
        if self.at_least is not None:
            parts.append(f"{name}.confidence >= ?")
            values.append(self.at_least)
        if self.below is not None:
            parts.append(f"{name}.confidence < ?")
            values.append(self.below)
        if self.run is not None:
            parts.append(f"{name}.run = ?")
            values.append(self.run)
        if self.folder is not None:
            parts.append(
                f"{name}.content IN (SELECT content FROM photographs "
                f"WHERE {in_folder('path', self.folder)} AND gone IS NULL)"
            )
        if self.photographs:
            parts.append(f"{name}.content IN (SELECT value FROM json_each(?))")
            contents = [content_of(catalogue, path) for path in self.photographs]
            values.append(json.dumps(contents))
        if self.types:
            is_one, patterns = self._of_type("s")
            parts.append(
                f"{name}.content IN (SELECT content FROM photographs s "
                f"WHERE {is_one} AND gone IS NULL)"
            )
            values += patterns
        return " AND ".join(parts), values

    def places(self, name: str) -> tuple[str, list[Any]]:
        """Folder, photographs and types as a condition on a table of photographs: no copies."""
        parts, values = [in_folder(f"{name}.path", self.folder)], list[Any]()
        if self.photographs:
            marks = ", ".join(["CAST(? AS TEXT)"] * len(self.photographs))
            parts.append(f"{name}.path IN ({marks})")
            values += [sql_text(path) for path in self.photographs]
        if self.types:
            is_one, patterns = self._of_type(name)
            parts.append(is_one)
            values += patterns
        return " AND ".join(parts), values

    def _of_type(self, name: str) -> tuple[str, list[str]]:
        """A condition on a table of photographs, and its values; LIKE knows no case."""
        patterns = [f"%{suffix}" for one in self.types for suffix in suffixes_of_type(one)]
        return "(" + " OR ".join([f"{name}.path LIKE ?"] * len(patterns)) + ")", patterns


def in_folder(column: str, folder: str | None) -> str:
    """Return a condition of SQL: the paths in a column lie in a folder or below it.

    The folder is named from the root, and may have a name that is not UTF-8. Without a folder, all
    paths pass.
    """
    start = (folder or "").strip("/")
    if start in ("", "."):
        return "1"
    low, high = (os.fsencode(start + end).hex() for end in "/0")  # 0 comes after /
    return f"({column} > CAST(x'{low}' AS TEXT) AND {column} < CAST(x'{high}' AS TEXT))"


def tag_numbers(
    catalogue: Catalogue, names: Sequence[str], *, may_be_new: bool = False
) -> list[int]:
    """Numbers of tags that are there, in whatever spelling; an unknown one is a mistake."""
    return [number for name in names for number in _numbers_of(catalogue, name, may_be_new)]


def _numbers_of(catalogue: Catalogue, name: str, may_be_new: bool) -> list[int]:
    if any("\ud800" <= one <= "\udfff" for one in name):  # an argument that is not UTF-8
        raise InvalidInput(f"The tag {name!r} has a character that no file can hold. Leave it out.")
    exact = catalogue.value("SELECT coalesce(same_as, id) FROM tags WHERE name = ?", (name,))
    if exact is not None:
        return [exact]
    rows = catalogue.rows(
        "SELECT DISTINCT coalesce(same_as, id) FROM tags WHERE key = ?", (normalize_tag(name),)
    )
    if rows or may_be_new:
        return [number for (number,) in rows]
    every = [one for (one,) in catalogue.rows("SELECT name FROM tags WHERE same_as IS NULL")]
    near = difflib.get_close_matches(name, every, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else " `tagkin tags list` has them all."
    raise NotFound(f"There is no tag {name!r} in this catalogue.{hint}")


def content_of(catalogue: Catalogue, path: str) -> int:
    """The content of a photograph that is there, by its path from the root."""
    found = catalogue.row(
        "SELECT content, problem FROM photographs WHERE path = CAST(? AS TEXT) AND gone IS NULL",
        (sql_text(path),),
    )
    if found is None:
        raise NotFound(f"{path} is not in the catalogue. Run `tagkin scan` to add it.")
    if found[0] is None:
        raise InvalidInput(f"{path} could not be read by the last scan: {found[1]}.")
    return int(found[0])
