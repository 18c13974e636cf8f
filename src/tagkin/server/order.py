"""In which order suggestions are shown: by the confidences that the last run stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tagkin.catalogue import Catalogue, OpenSuggestion, TagCounts

__all__ = ["Asked", "Order", "StoredOrder", "Verdict"]

Verdict = tuple[int, int, int | None]
"""A content, a tag, and 1 (accepted), -1 (rejected) or None (open again)."""

_N_LOOKED_AT = 40  # tags, those with most right suggestions, among which a question is chosen
_PAGE = 60


class Asked(NamedTuple):
    """A page to ask: one tag, and photographs that may show it, the surest first."""

    tag: int
    suggestions: Sequence[OpenSuggestion]
    expected_right: float
    expected_actions: float
    """Keys and clicks that it is likely to take."""


class Order(Protocol):
    """Which tags and which of their suggestions come first."""

    @property
    def is_live(self) -> bool:
        """Whether decisions change the order at once."""
        ...

    @property
    def is_opening(self) -> bool:
        """Whether decisions will change the order soon, and do not yet."""
        ...

    @property
    def is_at_work(self) -> bool:
        """Whether something goes on in the background, which `close` could not end."""
        ...

    def tags(self, catalogue: Catalogue) -> list[TagCounts]:
        """Tags that have suggestions, those that are worth most first."""
        ...

    def suggestions(
        self, catalogue: Catalogue, tag: int, n: int, after: OpenSuggestion | None
    ) -> Sequence[OpenSuggestion]:
        """Suggestions of a tag, the surest first, from after one of them."""
        ...

    def confidences(self, content: int, tags: Sequence[int]) -> dict[int, float]:
        """By tag, those of a photograph's suggestions that are others than was stored."""
        ...

    def expected(self) -> dict[int, float]:
        """By tag, how many of its suggestions are likely right, where it is not as stored."""
        ...

    def question(self, catalogue: Catalogue, strategy: str) -> Asked | None:
        """What to ask next; None where nothing is open."""
        ...

    def doubted(self) -> Sequence[tuple[int, int, float]]:
        """Accepted tags that may be wrong: content, tag, confidence; the least sure first."""
        ...

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Take note of what was decided, or taken back."""
        ...

    def catch_up(self) -> None:
        """Wait a moment, so that the next page shows what was learned from the last one."""
        ...

    def renew(self) -> None:
        """Take note that there is another model, and that there are other suggestions."""
        ...

    def close(self) -> None:
        """End what goes on in the background."""
        ...


class StoredOrder:
    """By the confidences that the last run stored: nothing changes before the next fit."""

    is_live = is_opening = is_at_work = False

    def tags(self, catalogue: Catalogue) -> list[TagCounts]:
        """Those with most right suggestions first, as far as confidences tell."""
        found = [one for one in catalogue.tags.list_all() if one.n_suggested]
        return sorted(found, key=lambda one: (-one.expected, one.name))

    def suggestions(
        self, catalogue: Catalogue, tag: int, n: int, after: OpenSuggestion | None
    ) -> Sequence[OpenSuggestion]:
        """As they are stored."""
        return catalogue.suggestions.for_tag(tag, n, after)

    def confidences(self, content: int, tags: Sequence[int]) -> dict[int, float]:
        """None is another."""
        return {}

    def expected(self) -> dict[int, float]:
        """All as stored."""
        return {}

    def question(self, catalogue: Catalogue, strategy: str) -> Asked | None:
        """The best page of the tags with most right suggestions."""
        from tagkin.annotator.asking import best_page  # takes seconds to import

        best, value = None, -1.0
        for tag in self.tags(catalogue)[:_N_LOOKED_AT]:
            found = catalogue.suggestions.for_tag(tag.id, _PAGE)
            page = best_page(
                np.array([one.confidence for one in found]),
                strategy,
                tag.n_accepted + tag.n_rejected,
            )
            if page is not None and page.value > value:
                value = page.value
                shown = [found[int(i)] for i in page.shown]
                best = Asked(tag.id, shown, page.expected_right, page.expected_actions)
        return best

    def doubted(self) -> Sequence[tuple[int, int, float]]:
        """None: what was stored says nothing of what was decided since."""
        return ()

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Before the next fit, nothing."""

    def catch_up(self) -> None:
        """There is nothing to wait for."""

    def renew(self) -> None:
        """Everything is asked of the catalogue."""

    def close(self) -> None:
        """Nothing goes on."""
