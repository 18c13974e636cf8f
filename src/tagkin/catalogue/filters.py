"""Filters that select suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tagkin.catalogue.columns import sql_text
from tagkin.catalogue.database import LISTED, Database, SqlValue, as_list
from tagkin.catalogue.photographs import Photographs, in_folder
from tagkin.catalogue.tags import Tags

__all__ = ["Filters"]


@dataclass(frozen=True)
class Filters:
    """Conditions that suggestions must all fulfil."""

    tags: Sequence[str] = ()
    """Any of these tags."""
    at_least: float | None = None
    """Smallest confidence, from 0 to 1."""
    below: float | None = None
    """Confidences are smaller than this."""
    folder: str | None = None
    """A folder from the root of the collection, with its subfolders."""
    photographs: Sequence[str] = ()
    """Any of these photographs, by path from the root."""

    @property
    def is_empty(self) -> bool:
        """Whether no condition is set."""
        return self == Filters()

    @property
    def is_everything(self) -> bool:
        """Whether at most the folder of the whole collection is named."""
        return not self.folder and self == Filters(folder=self.folder)

    @property
    def names_pairs(self) -> bool:
        """Whether photographs and tags are named and nothing else, so they need no suggestion."""
        has_limits = self.at_least is not None or self.below is not None
        return bool(self.photographs and self.tags) and not has_limits

    def sql_condition(self, database: Database, table: str) -> tuple[str, list[SqlValue]]:
        """Return the condition on a table of contents and tags, and its values."""
        parts, values = ["1"], list[SqlValue]()
        if self.tags:
            parts.append(f"{table}.tag {LISTED}")
            values.append(as_list(Tags(database).find(self.tags)))
        for test, value in ((">=", self.at_least), ("<", self.below)):
            if value is not None:
                parts.append(f"{table}.confidence {test} ?")
                values.append(value)
        if self.photographs:
            parts.append(f"{table}.content {LISTED}")
            content_of = Photographs(database).content_of
            values.append(as_list(content_of(path) for path in self.photographs))
        if self.folder is not None:
            place = in_folder("p.path", self.folder)
            parts.append(
                f"{table}.content IN (SELECT content FROM photographs p "
                f"WHERE {place} AND gone IS NULL)"
            )
        return " AND ".join(parts), values

    def sql_place(self) -> tuple[str, list[SqlValue]]:
        """Return the condition on a photograph `p`, which excludes copies elsewhere."""
        condition, values = in_folder("p.path", self.folder), list[SqlValue]()
        if self.photographs:
            marks = ", ".join(["CAST(? AS TEXT)"] * len(self.photographs))
            condition += f" AND p.path IN ({marks})"
            values += [sql_text(path) for path in self.photographs]
        return condition, values
