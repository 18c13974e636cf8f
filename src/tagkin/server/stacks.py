"""Stacks: the photographs of a burst as one tile, which one decision is for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tagkin.catalogue import Catalogue, OpenSuggestion
from tagkin.server.order import Reading

Answer = dict[str, Any]
"""Plain data and data classes, for templates and as JSON."""
Stack = list[OpenSuggestion]
"""Suggestions of a tag for the photographs of a burst, most confident first."""


def stack_page(
    reading: Reading, tag: int, n: int, after: OpenSuggestion | None
) -> tuple[list[Stack], OpenSuggestion | None]:
    """Return `n` stacks of a tag's suggestions, and the suggestion that the next page follows.

    A stack is where its most confident suggestion is, and nowhere else.
    """
    stacks: list[Stack] = []
    while page := reading.suggestions(tag, n, after):
        stack_of = _stacks_by_content(reading, tag, page)
        for suggestion in page:
            after = suggestion
            stack = stack_of.get(suggestion.content, [suggestion])
            if stack[0].content == suggestion.content:
                stacks.append(stack)
            if len(stacks) == n:
                return stacks, after
        if len(page) < n:
            break
    return stacks, None


def stack_suggestions(
    reading: Reading, tag: int, suggestions: Sequence[OpenSuggestion]
) -> list[Stack]:
    """Stack some suggestions of a tag, with all others of their burst."""
    stack_of = _stacks_by_content(reading, tag, suggestions)
    stacks: dict[int, Stack] = {}
    for suggestion in suggestions:
        stack = stack_of.get(suggestion.content, [suggestion])
        stacks.setdefault(stack[0].content, stack)
    return list(stacks.values())


def _stacks_by_content(
    reading: Reading, tag: int, suggestions: Sequence[OpenSuggestion]
) -> dict[int, Stack]:
    """Return the stacks of the suggestions that are in a burst, by content."""
    catalogue, selected = reading.catalogue, reading.selected
    burst_of = catalogue.bursts.of(suggestion.content for suggestion in suggestions)
    members = catalogue.bursts.members(set(burst_of.values()))
    known = {suggestion.content: suggestion for suggestion in suggestions}
    others = {c for contents in members.values() for c in contents} - known.keys()
    if selected is not None and others:
        numbers = sorted(others)
        others = {
            c for c, has in zip(numbers, selected.photographs.has(numbers), strict=True) if has
        }
    for other in catalogue.suggestions.of_tag(tag, others):
        known[other.content] = other
    stack_of: dict[int, Stack] = {}
    for contents in members.values():
        stack = [known[content] for content in contents if content in known]
        stack.sort(key=lambda suggestion: (-suggestion.confidence, suggestion.content))
        stack_of |= {suggestion.content: stack for suggestion in stack}
    return stack_of


def stack_results(
    catalogue: Catalogue,
    cards: Sequence[Answer],
    *,
    same: Callable[[Answer], Hashable] = lambda card: None,
    apart: bool = False,
) -> list[Answer]:
    """Put cards of one burst below the first of them, in ``stack``.

    Only cards for which `same` is equal are stacked, and none if they stay `apart`.
    """
    results = [{"fit": None, **card, "burst": None, "stack": []} for card in cards]
    contents = [card["content"] for card in results if card["content"] and not apart]
    burst_of = catalogue.bursts.of(contents)
    first: dict[Hashable, Answer] = {}
    shown = []
    for card in results:
        content = card["content"] or 0
        burst = card["burst"] = burst_of.get(content)
        key = burst, same(card)
        if burst is None or key not in first:
            first[key] = card
            shown.append(card)
        elif content != first[key]["content"]:
            first[key]["stack"].append(content)
    return shown


def in_burst(catalogue: Catalogue, content: int) -> tuple[int | None, list[int]]:
    """Return the burst of a content and its other members; None and nothing if it is alone."""
    burst = catalogue.bursts.of([content]).get(content)
    if burst is None:
        return None, []
    members = catalogue.bursts.members([burst]).get(burst, [])
    return burst, [member for member in members if member != content]
