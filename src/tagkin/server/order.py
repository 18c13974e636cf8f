"""In which order suggestions are shown: by what was stored, or by what was learned since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tagkin.catalogue import Batch, Catalogue, Open, TagCounts, list_tags, open_for_tag

__all__ = ["Order", "StoredOrder"]


class Order(Protocol):
    """Which tags and which of their suggestions come first."""

    def tags(self, catalogue: Catalogue) -> list[TagCounts]:
        """Tags that have suggestions, those that are worth most first."""
        ...

    def suggestions(
        self, catalogue: Catalogue, tag: int, n: int, after: Open | None
    ) -> Sequence[Open]:
        """Suggestions of a tag, the surest first, from after one of them."""
        ...

    def learn(self, catalogue: Catalogue, batch: Batch) -> None:
        """Take note of what was decided."""
        ...

    def forget(self, catalogue: Catalogue) -> None:
        """Take note that decisions were taken back, or that there is another model."""
        ...


class StoredOrder:
    """By the confidences that the last run stored."""

    def tags(self, catalogue: Catalogue) -> list[TagCounts]:
        """Those with most right suggestions first, as far as confidences tell."""
        found = [one for one in list_tags(catalogue) if one.n_suggested]
        return sorted(found, key=lambda one: (-one.expected, one.name))

    def suggestions(
        self, catalogue: Catalogue, tag: int, n: int, after: Open | None
    ) -> Sequence[Open]:
        """As they are stored."""
        return open_for_tag(catalogue, tag, n, after)

    def learn(self, catalogue: Catalogue, batch: Batch) -> None:
        """Nothing changes before the next fit."""

    def forget(self, catalogue: Catalogue) -> None:
        """Nothing was learned."""
