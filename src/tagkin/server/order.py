"""The order of suggestions, by the confidences that the last run stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tagkin.catalogue import Catalogue, OpenSuggestion, TagCounts
from tagkin.server.filtered_views import Verdict, View

Question = tuple[int, Sequence[OpenSuggestion]]
"""A tag and suggestions of it, most confident first."""

_N_CANDIDATES = 40  # tags with most correct suggestions, from which a question is chosen
_PAGE = 60


class Order:
    """Orders tags and suggestions by stored confidences, which change with the next fit.

    A subclass may learn from decisions before that.
    """

    is_live = False
    """Whether decisions change the order at once."""
    is_opening = False
    """Whether decisions will change the order soon, but not yet."""
    has_running_thread = False
    """Whether a thread still runs that `close` could not stop."""

    def tags(self, catalogue: Catalogue, selected: View | None = None) -> list[TagCounts]:
        """Return the tags with suggestions for selected photographs, most correct ones first."""
        tags = [tag for tag in catalogue.tags.list_all() if tag.n_suggested]
        if selected is not None:
            counts = selected.suggestions.counts
            tags = [_with_counts(tag, *counts[tag.id]) for tag in tags if tag.id in counts]
        return sorted(tags, key=lambda tag: (-tag.expected, tag.name))

    def suggestions(
        self,
        catalogue: Catalogue,
        tag: int,
        n: int,
        after: OpenSuggestion | None,
        selected: View | None = None,
    ) -> Sequence[OpenSuggestion]:
        """Return `n` suggestions of a tag after another one, most confident first."""
        if selected is not None:
            page = selected.suggestions.for_tag(tag, n, after)
            stored = catalogue.suggestions.of_tag(tag, [s.content for s in page])
            runs = {suggestion.content: suggestion.run for suggestion in stored}
            return [s._replace(run=runs.get(s.content)) for s in page]
        return catalogue.suggestions.for_tag(tag, n, after)

    def confidences(self, content: int, tags: Sequence[int]) -> dict[int, float]:
        """Return the confidences of a photograph's suggestions that differ from the stored."""
        return {}

    def expected(self) -> dict[int, float]:
        """Return the expected number of correct suggestions by tag, unless it is as stored."""
        return {}

    def question(
        self, catalogue: Catalogue, strategy: str, selected: View | None = None
    ) -> Question | None:
        """Return the best page to ask next; None if no suggestion is open."""
        from tagkin.annotator.asking import best_page  # takes seconds to import

        best, value = None, -1.0
        for tag in self.tags(catalogue, selected)[:_N_CANDIDATES]:
            suggestions = self.suggestions(catalogue, tag.id, _PAGE, None, selected)
            page = best_page(
                np.array([suggestion.confidence for suggestion in suggestions]),
                strategy,
                tag.n_accepted + tag.n_rejected,
            )
            if page is not None and page.value > value:
                value = page.value
                best = tag.id, [suggestions[int(i)] for i in page.shown]
        return best

    def list_doubtful(self) -> Sequence[tuple[int, int, float]]:
        """Return doubtful accepted tags: content, tag and confidence, least confident first."""
        return ()

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Learn from decisions."""

    def catch_up(self) -> None:
        """Wait briefly for pending updates."""

    def renew(self) -> None:
        """Use a new model and new suggestions."""

    def close(self) -> None:
        """Stop background work."""


@dataclass(frozen=True)
class Reading:
    """Sources of an answer: a catalogue, the order, and the photographs of the filters."""

    catalogue: Catalogue
    order: Order
    selected: View | None = None

    def tags(self) -> list[TagCounts]:
        """Return the tags with suggestions, in the order."""
        return self.order.tags(self.catalogue, self.selected)

    def suggestions(
        self, tag: int, n: int, after: OpenSuggestion | None
    ) -> Sequence[OpenSuggestion]:
        """Return `n` suggestions of a tag after another one, in the order."""
        return self.order.suggestions(self.catalogue, tag, n, after, self.selected)

    @property
    def is_of_series(self) -> bool:
        """Whether the photographs are one series, which are shown one by one."""
        return self.selected is not None and self.selected.is_of_series


def _with_counts(tag: TagCounts, n_suggested: int, expected: float) -> TagCounts:
    return replace(tag, n_suggested=n_suggested, expected=expected)
