"""Open suggestions: stored by a run, listed by tag or photograph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tagkin.catalogue.columns import pack_evidence, unpack_evidence
from tagkin.catalogue.database import ALL, HAS_FILE, LISTED, CataloguePart, Database, as_list
from tagkin.catalogue.decision_records import IN_BULK, IS_ANSWER
from tagkin.catalogue.photographs import COUNT_FILES
from tagkin.catalogue.runs import Runs
from tagkin.catalogue.tag_records import tag_number
from tagkin.wording import main_input, shares_of

if TYPE_CHECKING:
    from tagkin.annotator.suggestions import Kin, TagSuggestion

__all__ = [
    "PATH_OF_CONTENT",
    "OpenSuggestion",
    "PhotographSuggestion",
    "ReviewProgress",
    "StoredKin",
    "Suggestions",
    "locate_kin",
    "number_kin",
    "select_kin",
]

_LEAST_SHARE = 0.02  # of the score; kin with less hardly support a suggestion

PATH_OF_CONTENT = (
    "(SELECT min(path) FROM photographs p WHERE p.content = {}.content AND p.gone IS NULL)"
)
"""SQL: the path of the content in a row of a table."""


class OpenSuggestion(NamedTuple):
    """An open suggestion of a tag."""

    content: int
    path: str
    confidence: float
    run: int | None = None
    """The run that suggested it."""


AnswerColumns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class StoredKin(NamedTuple):
    """A photograph that supports a suggestion, by its content."""

    content: int
    path: str | None
    """None if it is gone."""
    share: float


def select_kin(kin: Sequence[StoredKin]) -> list[StoredKin]:
    """Return the kin that each have at least 2 % of the evidence for a suggestion."""
    return [photo for photo in kin if photo.share >= _LEAST_SHARE]


class PhotographSuggestion(NamedTuple):
    """An open suggestion for a photograph, with its evidence."""

    tag: str
    confidence: float
    run: int
    kin: Sequence[StoredKin]
    shares: Mapping[str, float]
    """See `tagkin.catalogue.columns.StoredEvidence`."""

    def proving_kin(self) -> list[StoredKin]:
        """Return the kin with at least 2 % of the score, see `select_kin`."""
        return select_kin(self.kin)


@dataclass(frozen=True)
class ReviewProgress:
    """The progress of a review."""

    n_photographs: int
    """With copies."""
    n_suggestions: int
    """Open suggestions."""
    n_to_review: int
    """Photographs that have open suggestions."""
    expected: float
    """How many of the open suggestions are likely correct."""
    n_accepted: int
    n_rejected: int
    is_tagged: bool
    """Whether any photograph has a tag, in files or accepted."""


_IS_ANSWER = f"d.holds AND d.tag IS NOT NULL AND d.confidence IS NOT NULL AND NOT {IN_BULK}"
_IS_MISSING = f"coalesce(c.suggested, -1) < ? AND {HAS_FILE.format('c.id')}"


class Suggestions(CataloguePart):
    """The open suggestions of a catalogue: ``catalogue.suggestions``."""

    def replace(
        self,
        run: int,
        suggestions: Sequence[tuple[int, Sequence[TagSuggestion]]],
        contents: Mapping[str, int] = MappingProxyType({}),
    ) -> list[list[TagSuggestion]]:
        """Replace the suggestions for contents by a run's suggestions; return the stored ones.

        `contents` are the numbers of kin by their files; other kin are omitted.

        Tags that a person decided on, that the photograph has, or that are forgotten are omitted. A
        finished photograph gets no suggestions. Marks the contents, see `mark`.
        """
        stored = []
        with self._db.transaction():
            number_of = cache(partial(tag_number, self._db))
            never = set(self._db.column("SELECT id FROM tags WHERE forgotten"))
            for content, suggested in suggestions:
                self._db.execute("DELETE FROM suggestions WHERE content = ?", (content,))
                numbers = [number_of(s.tag) for s in suggested]  # a new tag is known from here on
                known = self._db.column(
                    "SELECT other.id FROM decisions d LEFT JOIN tags t ON t.id = d.tag "
                    "LEFT JOIN tags other ON other.key = t.key WHERE d.content = ?1 AND d.holds "
                    "UNION SELECT other.id FROM photographs p JOIN found f ON f.photograph = p.id "
                    "JOIN tags t ON t.id = f.tag JOIN tags other ON other.key = t.key "
                    "WHERE p.content = ?1",
                    (content,),
                )
                omitted = never.union(known)
                new: dict[int, TagSuggestion] = {}
                for tag, suggestion in zip(numbers, suggested, strict=True):
                    if tag not in omitted and None not in omitted:  # None: it is finished
                        new.setdefault(tag, suggestion)
                rows = [
                    (
                        content,
                        tag,
                        run,
                        float(s.confidence),
                        pack_evidence(number_kin(s.kin, contents), shares_of(s)),
                    )
                    for tag, s in new.items()
                ]
                self._db.execute_many("INSERT INTO suggestions VALUES (?, ?, ?, ?, ?)", rows)
                stored.append(list(new.values()))
            self.mark(run, [content for content, _ in suggestions])
        return stored

    def mark(self, run: int, contents: Sequence[int]) -> None:
        """Note that a run looked for suggestions for contents."""
        self._db.execute(
            f"UPDATE contents SET suggested = ? WHERE id {LISTED}",
            (run, as_list(contents)),
        )

    def count_missing(self) -> int:
        """Count existing contents that no run since the last training looked at."""
        query = f"SELECT count(*) FROM contents c WHERE {_IS_MISSING}"
        return int(self._db.value(query, (Runs(self._db).last_training(),)))

    def missing(self) -> set[int]:
        """Return the contents that `count_missing` counts."""
        query = f"SELECT c.id FROM contents c WHERE {_IS_MISSING}"
        return set(self._db.column(query, (Runs(self._db).last_training(),)))

    def for_tag(
        self, tag: int, n: int = ALL, after: OpenSuggestion | None = None
    ) -> list[OpenSuggestion]:
        """Return suggestions of a tag, most confident first.

        Pass the last suggestion of a page as `after` to get the next page.
        """
        confidence, content = (2.0, -1) if after is None else (after.confidence, after.content)
        rows = self._db.rows(
            f"SELECT s.content, {PATH_OF_CONTENT.format('s')}, s.confidence, s.run "
            "FROM suggestions s WHERE s.tag = ?1 AND s.confidence <= ?2 "
            "AND (s.confidence < ?2 OR s.content > ?3) "
            "ORDER BY s.confidence DESC, s.content LIMIT ?4",
            (tag, confidence, content, n),
        )
        return [OpenSuggestion(*row) for row in rows]

    def of_tag(self, tag: int, contents: Iterable[int]) -> list[OpenSuggestion]:
        """Return the suggestions of a tag for some contents, without paths."""
        rows = self._db.rows(
            "SELECT content, '', confidence, run FROM suggestions WHERE tag = ? "
            f"AND content {LISTED}",
            (tag, as_list(contents)),
        )
        return [OpenSuggestion(*row) for row in rows]

    def of_contents(self, contents: Iterable[int]) -> dict[int, list[OpenSuggestion]]:
        """Return the suggestions for some contents by tag, most confident first, without paths."""
        suggestions: dict[int, list[OpenSuggestion]] = {}
        for tag, *row in self._db.rows(
            "SELECT tag, content, '', confidence, run FROM suggestions "
            f"WHERE content {LISTED} ORDER BY confidence DESC, content",
            (as_list(contents),),
        ):
            suggestions.setdefault(tag, []).append(OpenSuggestion(*row))
        return suggestions

    def tags_of(self, contents: Sequence[int]) -> dict[int, list[str]]:
        """Return the suggested tags of contents."""
        return self._db.groups(
            "SELECT s.content, t.name FROM suggestions s JOIN tags t ON t.id = s.tag "
            f"WHERE s.content {LISTED}",
            (as_list(contents),),
        )

    def contents_of_tag(self, tag: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the contents (n,) and confidences (n,) of all suggestions of a tag.

        Most confident first.
        """
        rows = self._db.rows(
            "SELECT content, confidence FROM suggestions WHERE tag = ? "
            "ORDER BY confidence DESC, content",
            (tag,),
        )
        table = np.fromiter(rows, [("content", np.int64), ("confidence", np.float64)], len(rows))
        return table["content"], table["confidence"]

    def answers_since_training(self) -> dict[int, list[tuple[int, bool]]]:
        """Return contents and whether a tag was accepted, by tag, as decided since then.

        The tags need not have been suggested. What was accepted in bulk is not an answer.
        """
        answers: dict[int, list[tuple[int, bool]]] = {}
        for tag, content, is_accepted in self._db.rows(
            "SELECT d.tag, d.content, d.verdict > 0 FROM decisions d WHERE d.run > ? AND d.holds "
            f"AND d.tag IS NOT NULL AND {IS_ANSWER} AND NOT {IN_BULK}",
            (Runs(self._db).last_training(),),
        ):
            answers.setdefault(tag, []).append((content, is_accepted))
        return answers

    def answers_to_model(self) -> AnswerColumns:
        """Return the answers since the last training to suggestions of its model, last ones first.

        These are tags, contents, confidences of the suggestions, and 1 for accepted tags or 0. What
        was accepted in bulk is not an answer.
        """
        trained = Runs(self._db).last_training()
        return self._answers("d.run > ?1 AND d.suggested_by > ?1 AND", (trained,), ALL)

    def last_answers(self, n: int = 10_000) -> AnswerColumns:
        """Return the last `n` answers to suggestions of any model, as above."""
        return self._answers("", (), n)

    def _answers(self, condition: str, values: tuple[int, ...], n: int) -> AnswerColumns:
        rows = self._db.rows(
            "SELECT d.tag, d.content, d.confidence, d.verdict > 0 FROM decisions d "
            f"WHERE {condition} {_IS_ANSWER} ORDER BY d.id DESC LIMIT {n}",
            values,
        )
        table = np.array(rows, np.float64).reshape(-1, 4)
        tags, contents = table[:, :2].T.astype(np.int64)
        return tags, contents, table[:, 2], table[:, 3]

    def for_photograph(self, content: int) -> list[PhotographSuggestion]:
        """Return suggestions for a content, most confident first, with their kin."""
        rows = self._db.rows(
            "SELECT t.name, s.confidence, s.run, s.evidence FROM suggestions s "
            "JOIN tags t ON t.id = s.tag WHERE s.content = ? ORDER BY s.confidence DESC, t.name",
            (content,),
        )
        evidence = [unpack_evidence(row[3]) for row in rows]
        kin_lists = locate_kin(self._db, [stored.kin for stored in evidence])
        return [
            PhotographSuggestion(tag, confidence, run, kin, stored.shares)
            for (tag, confidence, run, _), kin, stored in zip(
                rows, kin_lists, evidence, strict=True
            )
        ]

    def for_burst(
        self, contents: Sequence[int]
    ) -> tuple[list[PhotographSuggestion], dict[str, list[OpenSuggestion]]]:
        """Return the suggestions for the first of some contents, or else for another.

        Also return all suggestions of each tag, without paths.
        """
        suggested: dict[str, PhotographSuggestion] = {}
        open_for: dict[str, list[OpenSuggestion]] = {}
        for content in contents:
            for suggestion in self.for_photograph(content):
                suggested.setdefault(suggestion.tag, suggestion)
                one = OpenSuggestion(content, "", suggestion.confidence, suggestion.run)
                open_for.setdefault(suggestion.tag, []).append(one)
        return list(suggested.values()), open_for

    def main_inputs(self, tag: int, contents: Sequence[int]) -> dict[int, str]:
        """Return what contributes most to a tag's suggestion for each content; see `main_input`."""
        rows = self._db.rows(
            f"SELECT content, evidence FROM suggestions WHERE tag = ? AND content {LISTED}",
            (tag, as_list(contents)),
        )
        evidence = [(content, unpack_evidence(packed)) for content, packed in rows]
        return {content: main_input(stored.shares) for content, stored in evidence}

    def expected_of_run(self, run: int) -> float:
        """Return how many open suggestions of a run are likely correct."""
        query = "SELECT total(confidence) FROM suggestions WHERE run = ?"
        return float(self._db.value(query, (run,)))

    def progress(self) -> ReviewProgress:
        """Count open suggestions and decisions."""
        n_suggestions, expected, n_accepted, n_rejected, n_found = self._db.rows(
            "SELECT total(n_suggested), total(expected), total(n_accepted), total(n_rejected), "
            "total(n_found) FROM tags"
        )[0]
        return ReviewProgress(
            self._db.value(f"SELECT {COUNT_FILES}"),
            int(n_suggestions),
            self._db.value("SELECT count(*) FROM contents WHERE n_suggested > 0"),
            max(0.0, expected),
            int(n_accepted),
            int(n_rejected),
            n_found + n_accepted > 0,
        )


def number_kin(kin: Iterable[Kin], contents: Mapping[str, int]) -> list[tuple[int, float]]:
    """Return kin by their contents, with their shares; kin that are not among these are omitted."""
    return [(contents[photo.file], photo.share) for photo in kin if photo.file in contents]


def locate_kin(
    database: Database, kin_lists: Sequence[Sequence[tuple[int, float]]]
) -> list[list[StoredKin]]:
    """Add the current paths to lists of kin, which often share contents."""
    contents = {content for kin in kin_lists for content, _ in kin}
    paths: dict[int, str] = dict(
        database.rows(
            "SELECT content, min(path) FROM photographs WHERE gone IS NULL "
            f"AND content {LISTED} GROUP BY content",
            (as_list(contents),),
        )
    )
    return [
        [StoredKin(content, paths.get(content), share) for content, share in kin]
        for kin in kin_lists
    ]
