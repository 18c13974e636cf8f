"""The tags of a collection: counts and quality, looking them up, renaming and merging them.

Changes of tags never change files, and each is a run that can be undone. A renamed tag is written
under its new name from then on; a forgotten tag is neither learned nor suggested.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from tagkin.catalogue.database import LISTED, CataloguePart, Row, as_list
from tagkin.catalogue.tag_edits import record_edit
from tagkin.catalogue.tag_records import (
    IS_USED,
    check_tag,
    forget_tag,
    merge_tag,
    tag_number,
)
from tagkin.collection.levels import fold
from tagkin.errors import InvalidInput, NotFound
from tagkin.labels import normalize_tag, plural_pairs
from tagkin.wording import quote_tags

__all__ = [
    "Duplicates",
    "TagCounts",
    "Tags",
    "TagsChanged",
    "find_duplicates",
    "find_same_meaning",
]

_COUNTS = (
    "id, name, n_found, n_accepted, n_rejected, n_suggested, expected, quality, forgotten FROM tags"
)
_IN_USE = f"same_as IS NULL AND {IS_USED}"

# Among 378 common tags, six pairs have a cosine of .76 or more: flower and blossom, turtle and
# tortoise, couch and sofa, ocean and sea, crocodile and alligator, car and vehicle.
_SURE = 0.76  # cosine of two names that mean the same, whatever the photographs
_TOGETHER = 0.5  # share of the photographs with one tag that have both, for other names


@dataclass(frozen=True)
class TagCounts:
    """A tag and its counts."""

    id: int
    name: str
    n_found: int
    """Photographs whose files have it."""
    n_accepted: int
    n_rejected: int
    n_suggested: int
    """Open suggestions."""
    expected: float
    """How many of these are likely correct."""
    quality: float | None
    """Average precision on photographs that the last training held out; None if not learned."""
    is_forgotten: bool
    """Neither learned nor suggested."""

    @property
    def accepted_share(self) -> float | None:
        """The share of accepted decisions; None without decisions."""
        n = self.n_accepted + self.n_rejected
        return self.n_accepted / n if n else None

    def to_dict(self) -> dict[str, object]:
        """Return a plain dict, ready for JSON."""
        return asdict(self) | {"accepted_share": self.accepted_share}


@dataclass(frozen=True)
class TagsChanged:
    """The effect of a change of tags."""

    tags: list[str]
    """The tags that change."""
    into: str | None
    """Their new tag; None if they are forgotten."""
    n_found: int
    """Photographs whose files have them; the files stay unchanged."""
    n_decisions: int
    n_suggestions: int
    run: int


@dataclass(frozen=True)
class Duplicates:
    """Tags that are likely the same."""

    keep: str
    """The tag on most photographs."""
    others: Sequence[str]
    why: str
    """The difference: spelling or plural; or the same meaning."""


class Tags(CataloguePart):
    """The tags of a catalogue: ``catalogue.tags``."""

    # --- listing -------------------------------------------------------------------------

    def list_all(self) -> list[TagCounts]:
        """Return the tags in use, and forgotten tags, most photographs first."""
        rows = self._db.rows(
            f"SELECT {_COUNTS} WHERE {_IN_USE} ORDER BY n_found + n_accepted DESC, key, name"
        )
        return [_as_counts(row) for row in rows]

    def count(self, tag: int) -> TagCounts:
        """Return the counts of a tag, by its number or a former number."""
        row = self._db.row(
            f"SELECT {_COUNTS} WHERE id = coalesce((SELECT same_as FROM tags WHERE id = ?1), ?1)",
            (tag,),
        )
        if row is None:
            raise NotFound(f"There is no tag with the number {tag}.")
        return _as_counts(row)

    def duplicates(self) -> list[Duplicates]:
        """Find likely duplicates such as dog, dogs and Dog, except among forgotten tags."""
        tags = [tag for tag in self.list_all() if not tag.is_forgotten]
        return find_duplicates({tag.name: tag.n_found + tag.n_accepted for tag in tags})

    def same_meaning(self) -> list[Duplicates]:
        """Find pairs of tags that mean the same, such as car and automobile, or Hund and dog."""
        tags = {tag.name: tag for tag in self.list_all() if not tag.is_forgotten}

        def count_both(first: str, second: str) -> int:
            having = "SELECT photograph FROM found WHERE tag = ?"
            numbers = tags[first].id, tags[second].id
            row = self._db.row(f"SELECT count(*) FROM ({having} INTERSECT {having})", numbers)
            return int(row[0]) if row else 0

        counts = {name: tag.n_found + tag.n_accepted for name, tag in tags.items()}
        return find_same_meaning(counts, count_both)

    def names_of(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the names of tags."""
        query = f"SELECT id, name FROM tags WHERE id {LISTED}"
        return dict(self._db.rows(query, (as_list(numbers),)))

    def on(self, contents: Sequence[int]) -> dict[int, set[int]]:
        """Return which of some contents have each tag, in files or accepted."""
        on: dict[int, set[int]] = {}
        for tag, content in self._db.rows(
            "SELECT f.tag, p.content FROM photographs p JOIN found f ON f.photograph = p.id "
            f"JOIN tags t ON t.id = f.tag WHERE p.gone IS NULL AND p.content {LISTED} "
            "AND NOT t.forgotten UNION SELECT tag, content FROM decisions "
            f"WHERE holds AND verdict = 1 AND content {LISTED} EXCEPT SELECT s.id, d.content "
            "FROM decisions d JOIN tags t ON t.id = d.tag JOIN tags s ON s.key = t.key "
            f"WHERE d.holds AND d.content {LISTED} GROUP BY s.id, d.content "
            "HAVING max(d.verdict) = -1",
            (as_list(contents),) * 3,
        ):
            on.setdefault(tag, set()).add(content)
        return on

    def complete(self, text: str) -> list[tuple[int, str]]:
        """Return numbers and names of tags for the text typed so far.

        The tag itself comes first, then tags that begin with the text, then tags that contain it;
        in each group, tags on many photographs first. Case and spelling do not matter.
        """
        rows = self._db.rows(
            "SELECT id, name FROM tags WHERE same_as IS NULL "
            "AND instr(key, :text) AND n_found + n_accepted + n_suggested > 0 "
            "ORDER BY key <> :text, instr(key, :text) > 1, n_found + n_accepted DESC, key, name "
            "LIMIT 12",
            {"text": normalize_tag(text)},
        )
        return [(number, name) for number, name in rows]

    # --- numbers and names ---------------------------------------------------------------

    def numbers_of(self, names: Sequence[str]) -> dict[str, int]:
        """Return the numbers of tags by exact name; unknown names are omitted."""
        rows = self._db.rows(
            f"SELECT name, coalesce(same_as, id) FROM tags WHERE name {LISTED}",
            (as_list(names),),
        )
        return dict(rows)

    def find(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of tags in any spelling, of all tags that a name can mean."""
        return [number for name in names for number in self._find(name)]

    def _find(self, name: str) -> list[int]:
        if any("\ud800" <= char <= "\udfff" for char in name):  # an argument that is not UTF-8
            raise InvalidInput(
                f"The tag {name!r} has a character that no file can hold. Leave it out."
            )
        query = (
            "SELECT id FROM tags WHERE {} "
            "AND id IN (SELECT coalesce(same_as, id) FROM tags WHERE {} = ?)"
        )
        spellings = ("name", name), ("key", fold(name))
        for used in (_IN_USE, "1"):  # an undone edit leaves a tag that nothing uses
            for column, value in spellings:
                numbers = self._db.column(query.format(used, column), (value,))
                if numbers:
                    return numbers
        names = self._db.column("SELECT name FROM tags WHERE same_as IS NULL")
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`tagkin tags list` lists all."
        raise NotFound(f"There is no tag {name!r} in this catalogue. {hint}")

    # --- changes -------------------------------------------------------------------------

    def change(self, what: str, names: Sequence[str], into: str | None = None) -> TagsChanged:
        """Change tags; `what` is "rename", "merge", "forget" or "restore".

        `into` is the new tag of a tag that is renamed, where it must be new, or of merged tags.
        """
        return self.change_numbers(what, list(dict.fromkeys(self.find(names))), into)

    def change_numbers(
        self, what: str, numbers: Sequence[int], into: str | None = None
    ) -> TagsChanged:
        """Change tags as `change` does, by their numbers."""
        if into is not None:
            into = check_tag(into)
            numbers = self._check_change(what, numbers, into)
        rows = self._db.rows(
            "SELECT name, n_found, n_accepted + n_rejected, n_suggested FROM tags "
            f"WHERE id {LISTED}",
            (as_list(numbers),),
        )
        names, *counts = zip(*rows, strict=True)
        lost = f"SELECT 1 FROM tags WHERE id {LISTED} AND forgotten"
        if what == "restore" and self._db.row(lost, (as_list(numbers),)) is None:
            raise InvalidInput(f"Not forgotten: {quote_tags(names)}.")
        parameters = {"tags": list(names), "into": into}
        with (
            self._db.transaction(),
            self._db.run(f"tags {what}", parameters) as run,
            record_edit(self._db, run.id, numbers, into),
        ):
            for number in numbers:
                if into is None:
                    forget_tag(self._db, number, what == "forget")
                    continue
                # a tag under its own name, even if it was renamed or forgotten before
                own = "UPDATE tags SET same_as = NULL, forgotten = 0 WHERE name = ?"
                self._db.execute(own, (into,))
                new = tag_number(self._db, into)
                if what == "rename":
                    forgotten = "(SELECT forgotten FROM tags WHERE id = ?)"
                    change = f"UPDATE tags SET forgotten = {forgotten} WHERE id = ?"
                    self._db.execute(change, (number, new))
                merge_tag(self._db, number, new)
            n_found, n_decisions, n_suggestions = map(sum, counts)
            run.outcome |= {"found": n_found, "decisions": n_decisions}
        return TagsChanged(list(names), into, n_found, n_decisions, n_suggestions, run.id)

    def _check_change(self, what: str, numbers: Sequence[int], into: str) -> list[int]:
        """Return the tags to change, without the new one; the name of a renamed tag must be new."""
        used = self._db.value(f"SELECT id FROM tags WHERE name = ? AND {_IN_USE}", (into,))
        if what == "rename" and used is not None and used not in numbers:
            raise InvalidInput(f"{into!r} is a tag already. `tagkin tags merge` merges the two.")
        others = [number for number in numbers if number != used]
        if not others:
            raise InvalidInput(f"{into!r} is already the tag's name.")
        return others


def _as_counts(row: Row) -> TagCounts:
    values = (*row[:-1], bool(row[-1]))
    return TagCounts(*values)


# --- likely duplicates -------------------------------------------------------------------


def find_duplicates(counts: Mapping[str, int]) -> list[Duplicates]:
    """Find tags that differ in case, spaces or hyphens, or as singular and plural.

    `counts` are the photographs of each tag.
    """
    by_form: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        by_form[_form(name)].append(name)
    groups = [("spelling", names) for names in by_form.values() if len(names) > 1]
    groups += [("plural", [*by_form[a], *by_form[b]]) for a, b in plural_pairs(by_form)]
    return _choose_kept(groups, counts)


def find_same_meaning(
    counts: Mapping[str, int], count_both: Callable[[str, str], int]
) -> list[Duplicates]:
    """Find pairs of tags that mean the same, such as car and automobile, or Hund and dog.

    Names that are only likely to mean the same count if half of the photographs with one of the
    tags have both. `count_both` returns the number of photographs with both.
    """
    from tagkin.tag_meanings import find_same_meaning  # reads the encoder

    pairs = []
    for first, second, cosine in find_same_meaning(list(counts)):
        is_same = cosine >= _SURE
        if not is_same:
            n_both = count_both(first, second)
            is_same = n_both >= _TOGETHER * max(counts[first] + counts[second] - n_both, 1)
        if is_same:
            pairs.append(("meaning", [first, second]))
    return _choose_kept(pairs, counts)


def _choose_kept(
    groups: Iterable[tuple[str, list[str]]], counts: Mapping[str, int]
) -> list[Duplicates]:
    """Keep the most frequent tag of each group, which comes with its difference."""
    duplicates = []
    for why, names in groups:
        keep, *others = sorted(names, key=lambda name: (-counts[name], name))
        duplicates.append(Duplicates(keep, others, why))
    return sorted(duplicates, key=lambda group: (-counts[group.keep], group.keep))


def _form(name: str) -> str:
    """Return the tag without case, spaces, hyphens and dots."""
    key = normalize_tag(name)
    return re.sub(r"[\s_.'’\-]+", "", key) or key
