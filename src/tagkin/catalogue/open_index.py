"""All open suggestions in memory, for pages that show some of the photographs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from tagkin.catalogue.database import Database
from tagkin.catalogue.selection import Selected
from tagkin.catalogue.suggestions import OpenSuggestion

__all__ = ["OpenIndex", "SelectedSuggestions"]


_ROW = np.dtype([("tag", np.int64), ("content", np.int64), ("confidence", np.float64)])


class OpenIndex:
    """The open suggestions of a catalogue by tag, most confident first.

    `learn` takes decisions as they are made. Any thread may call any method.
    """

    def __init__(self, database: Database):
        self._run = _last_run(database)
        # the index of suggestions has these columns in this order, without evidence
        rows = database.rows(
            "SELECT tag, content, confidence FROM suggestions INDEXED BY suggestions_by_tag "
            "ORDER BY tag, confidence DESC, content"
        )
        table = np.fromiter(rows, dtype=_ROW, count=len(rows))
        self.tags, self.contents = table["tag"].copy(), table["content"].copy()
        self.confidences = table["confidence"].copy()
        self.n_tags = int(self.tags.max(initial=-1)) + 1
        self._starts = np.searchsorted(self.tags, np.arange(self.n_tags + 1))
        self.is_open = np.ones(len(rows), bool)
        self._is_complete = True

    def is_current(self, database: Database) -> bool:
        """Whether it knows all open suggestions."""
        return self._is_complete and self._run == _last_run(database)

    def learn(self, verdicts: Iterable[tuple[int, int, int | None]]) -> None:
        """Close decided suggestions; a verdict of None opens a suggestion again."""
        for content, tag, verdict in verdicts:
            start, end = self.range_of(tag)
            at = start + np.flatnonzero(self.contents[start:end] == content)
            self.is_open[at] = verdict is None
            if verdict is None and not len(at):
                self._is_complete = False  # it was decided before this was read

    def select(self, selected: Selected) -> SelectedSuggestions:
        """Return the open suggestions for selected photographs."""
        return SelectedSuggestions(self, self.is_open & selected.has(self.contents))

    def range_of(self, tag: int) -> tuple[int, int]:
        """Return the first and the last position of a tag's suggestions."""
        if not 0 <= tag < self.n_tags:
            return 0, 0
        return int(self._starts[tag]), int(self._starts[tag + 1])


class SelectedSuggestions:
    """The open suggestions that `mask` selects."""

    def __init__(self, index: OpenIndex, mask: np.ndarray):
        self._index, self._mask = index, mask

    @cached_property
    def counts(self) -> dict[int, tuple[int, float]]:
        """How many there are by tag, and how many of these are likely correct."""
        index, tags = self._index, self._index.tags[self._mask]
        numbers = np.bincount(tags, minlength=index.n_tags)
        expected = np.bincount(tags, index.confidences[self._mask], minlength=index.n_tags)
        return {int(t): (int(numbers[t]), float(expected[t])) for t in np.flatnonzero(numbers)}

    def for_tag(
        self, tag: int, n: int, after: OpenSuggestion | None = None
    ) -> list[OpenSuggestion]:
        """Return suggestions of a tag as `Suggestions.for_tag` does, without paths and runs."""
        index, (start, end) = self._index, self._index.range_of(tag)
        at = start + np.flatnonzero(self._mask[start:end])
        if after is not None:
            p, content = index.confidences[at], index.contents[at]
            later = (p < after.confidence) | ((p == after.confidence) & (content > after.content))
            at = at[later]
        pairs = zip(
            index.contents[at[:n]].tolist(), index.confidences[at[:n]].tolist(), strict=True
        )
        return [OpenSuggestion(content, "", confidence) for content, confidence in pairs]


def _last_run(database: Database) -> int | None:
    """Return the last run that made suggestions, or edited tags."""
    run: int | None = database.value(
        "SELECT max(id) FROM runs WHERE (what = 'suggest' AND ended_at IS NOT NULL) "
        "OR id IN (SELECT run FROM tag_changes)"
    )
    return run
