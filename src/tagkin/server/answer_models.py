"""The answers of the HTTP interface, as its OpenAPI description shows them.

They describe and do not filter: an answer may have more fields, which later versions may drop.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class State(BaseModel):
    """The progress of a review."""

    photographs: int
    suggestions: int = Field(description="Open suggestions.")
    to_review: int = Field(description="Photographs with open suggestions.")
    expected: float = Field(description="How many of the suggestions are likely correct.")
    accepted: int
    rejected: int
    can_undo: bool
    can_redo: bool


class NamedTag(BaseModel):
    """A tag by number and name."""

    id: int
    name: str


class KindOfTag(NamedTag):
    """A tag to search for."""

    kind: str = Field(description="keyword, folder, place or person.")


class Completions(BaseModel):
    """Tags that complete a typed text."""

    tags: list[KindOfTag]


class TagRow(NamedTag):
    """A tag with its counts."""

    found: int = Field(description="Photographs whose files have it.")
    accepted: int
    rejected: int
    suggested: int
    expected: float
    quality: float | None = Field(description="Average precision on held-out photographs.")


class TagPage(BaseModel):
    """Tags with suggestions, best first."""

    n_tags: int
    tags: list[TagRow]


class Card(BaseModel):
    """A photograph."""

    content: int | None = Field(description="Its number; null if the scan could not read it.")
    name: str
    folder: str = Field(description="From the root of the collection.")
    thumbnail: str | None = Field(description="Address from the start of the review.")
    picture: str | None


class SuggestedCard(Card):
    """A photograph for which a tag is suggested."""

    confidence: float
    run: int = Field(description="The run that suggested the tag.")


class SuggestionPage(BaseModel):
    """Suggestions of a tag, most confident first."""

    tag: NamedTag
    suggestions: list[SuggestedCard]
    next: str | None = Field(description="Pass it as `after` for the next page.")


class SuggestedTag(BaseModel):
    """A tag that is suggested for a photograph."""

    tag: int
    name: str
    confidence: float
    run: int
    kin: list[dict[str, Any]] = Field(description="Tagged photographs that support it.")


class OwnTag(BaseModel):
    """A tag of a photograph, or one that was rejected."""

    tag: int
    name: str
    state: str = Field(description="found, accepted or rejected.")


class OtherTag(BaseModel):
    """A folder, place or person of a photograph."""

    tag: int
    name: str
    kind: str
    said: str = Field(description="Where it comes from.")


class Photograph(Card):
    """A photograph with its suggestions and tags."""

    suggestions: list[SuggestedTag]
    tags: list[OwnTag]
    others: list[OtherTag]
    next: int | None = Field(description="The next photograph with suggestions.")


class NextPhotograph(BaseModel):
    """The next photograph with suggestions, or null."""

    photograph: Photograph | None


class Result(Card):
    """A photograph that a search found."""

    fit: float | None = Field(
        None, description="For words: 1 for the best match, 0 if they fit no better than most."
    )


class Results(BaseModel):
    """Photographs that a search found."""

    photographs: list[Result]
    next: int | None = Field(description="Pass it as `after` for the next page.")
    note: str = Field("", description="Says so if words fit no photograph.")


class Decided(BaseModel):
    """The decisions of one step."""

    run: int | None = Field(description="The run, to undo it; null if nothing changed.")
    accepted: int
    rejected: int
    already: int = Field(description="Pairs that were decided before.")
    kept: int = Field(description="Those among them with another verdict.")
    state: State


class Undone(BaseModel):
    """Decisions that were undone, or made again."""

    run: int | None
    decisions: int
    kept: int = Field(description="Decisions that later ones had replaced; those stay.")
    state: State


class Error(BaseModel):
    """Why a request failed, as a sentence."""

    error: str
