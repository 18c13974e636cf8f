"""Answers of the review: what its pages show, and what its HTTP interface returns.

FastAPI describes them for OpenAPI, checks them and writes them as JSON. `Text` is text of a person
or a file, in which characters that JSON cannot contain are replaced.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import BeforeValidator
from typing_extensions import TypedDict

from tagkin.catalogue import TagCounts
from tagkin.templating import shown

Text = Annotated[str, BeforeValidator(shown)]

ShownDecision = tuple[int, float, int | None]
"""A photograph, the shown confidence, and the run that suggested the tag."""


class Error(TypedDict):
    """Why a request failed, as a sentence."""

    error: str


# --- state -------------------------------------------------------------------------------------


class StepState(TypedDict):
    """A step in progress; `left` are the seconds that it probably still takes."""

    what: str
    done: int
    total: int
    left: int | None


class FitState(TypedDict):
    """The state of background work: of a running job its step, of a failed one why.

    `scan` is the step of a scan that goes on beside the job, `at` when the job ended.
    """

    state: Literal["idle", "running", "done", "failed"]
    job: NotRequired[str]
    what: NotRequired[str]
    done: NotRequired[int]
    total: NotRequired[int]
    left: NotRequired[int | None]
    scan: NotRequired[StepState | None]
    error: NotRequired[Text]
    at: NotRequired[float]


class NamedFailure(TypedDict):
    """A file, and why it could not be read or written."""

    file: Text
    reason: Text


class WriteState(TypedDict):
    """The state of writing: of a running job its step, of an ended one a sentence, `text`.

    A finished job has its run, whether that can be undone, and its first failures. `plans` is the
    number of plans that were made.
    """

    state: Literal["idle", "running", "done", "failed"]
    plans: int
    what: NotRequired[str]
    done: NotRequired[int]
    total: NotRequired[int]
    text: NotRequired[Text]
    run: NotRequired[int | None]
    can_undo: NotRequired[bool]
    failures: NotRequired[list[NamedFailure]]
    n_failures: NotRequired[int]


class State(TypedDict):
    """The progress of a review.

    `suggestions` are open ones, `to_review` photographs with open suggestions, and `expected` is
    how many of the suggestions are likely correct. `version` changes with every decision; `pace`
    says how long the rest takes.
    """

    version: int
    photographs: int
    suggestions: int
    to_review: int
    expected: float
    accepted: int
    rejected: int
    pace: str
    can_undo: bool
    can_redo: bool
    fit: FitState
    write: WriteState


# --- tags --------------------------------------------------------------------------------------


class NamedTag(TypedDict):
    """A tag by number and name."""

    id: int
    name: Text


class Completions(TypedDict):
    """Tags that complete a typed text."""

    tags: list[NamedTag]


class TagPage(TypedDict):
    """Tags with suggestions, best first."""

    n_tags: int
    tags: list[TagCounts]


class TagChanged(TypedDict):
    """A change of a tag: its run, the tags and the number of photographs that it concerns."""

    run: int | None
    tag: TagCounts
    tags: list[Text]
    photographs: int
    state: State


# --- photographs -------------------------------------------------------------------------------


class Card(TypedDict):
    """A photograph.

    `content` is its number; it is null, like the pictures, if the scan could not read it. `folder`
    is from the root of the collection. `thumbnail`, `picture` and the larger copies in `srcset` are
    addresses from the start of the review.
    """

    content: int | None
    name: Text
    folder: Text
    thumbnail: str | None
    picture: str | None
    srcset: str | None


class SuggestedCard(Card):
    """A photograph for which a tag is suggested, by the run.

    `by_name` tells that the suggestion comes mostly from the tag's name. A card may stand for a
    burst; then `stack` has the decisions on its other photographs.
    """

    confidence: float
    run: int | None
    by_name: bool
    burst: int | None
    stack: list[ShownDecision]


class SuggestionPage(TypedDict):
    """Suggestions of a tag, most confident first; pass `next` as `after` for the next page."""

    tag: TagCounts
    suggestions: list[SuggestedCard]
    next: str | None


class KinCard(Card):
    """A photograph that supports a suggestion, and its share of the score."""

    share: float


class SuggestedTag(TypedDict):
    """A tag that is suggested for a photograph, by the run.

    `kin` are the tagged photographs that support it, and `shares` says what else does. `decisions`
    are for all photographs of the burst.
    """

    tag: int
    name: Text
    confidence: float
    run: int | None
    decisions: list[ShownDecision]
    kin: list[KinCard]
    by_name: bool
    shares: str


class TagSource(TypedDict):
    """Who says that a photograph has a tag."""

    who: str
    text: Text
    when: str | None


class OwnTag(TypedDict):
    """A tag of a photograph, or one that was rejected: found, accepted or rejected."""

    tag: int
    name: Text
    state: str
    said: list[TagSource]


class Finished(TypedDict):
    """The run that finished a photograph, and how many photographs it finished."""

    run: int
    n: int


class Photograph(Card):
    """A photograph with its suggestions and tags.

    `offers_finish` tells that all likely suggestions were answered, so it may be finished.
    `members` are the other photographs of its burst, and `next` is the next photograph with
    suggestions.
    """

    finished: Finished | None
    offers_finish: bool
    suggestions: list[SuggestedTag]
    burst: int | None
    members: list[Card]
    tags: list[OwnTag]
    next: int | None


class NextPhotograph(TypedDict):
    """The next photograph with suggestions, or null."""

    photograph: Photograph | None


class Result(Card):
    """A photograph that a search found; `stack` has the others of its burst.

    `fit` is for words: 1 for the best match, 0 if they fit no better than most.
    """

    fit: float | None
    burst: int | None
    stack: list[int]


class Results(TypedDict):
    """Photographs that a search found; pass `next` as `after` for the next page.

    `note` says so if words fit no photograph.
    """

    photographs: list[Result]
    next: int | None
    note: str


class Doubt(Result):
    """A photograph with a tag that seems wrong or missing, or a doubtful accepted tag."""

    tag: int
    tag_name: Text
    kind: str
    confidence: float
    was_accepted: bool
    kin: list[KinCard]


class Dot(TypedDict):
    """A photograph on the map, with positions from 0 to 1 in both spaces.

    `colour` is a position in the map's `tags`, or −1. `selected` tells whether the filters leave
    it.
    """

    content: int
    name: Text
    thumbnail: str
    semantic: tuple[float, float]
    visual: tuple[float, float]
    colour: int
    selected: bool


class Map(TypedDict):
    """The map of the collection, without dots before the first training."""

    tags: list[str]
    dots: list[Dot]


# --- changes -----------------------------------------------------------------------------------


class Decided(TypedDict):
    """The decisions of one step, whose run undoes them; null if nothing changed.

    `already` are pairs that were decided before, and `kept` those among them with another verdict.
    """

    run: int | None
    accepted: int
    rejected: int
    already: int
    kept: int
    state: State


class FinishedStep(TypedDict):
    """How many photographs a step finished, and how many tags it rejected."""

    run: int | None
    finished: int
    rejected: int
    state: State


class Undone(TypedDict):
    """Decisions that were undone, or made again.

    Later decisions had replaced those in `kept`; they stay. `edited` are tags whose edit was
    undone, and `tags` the first tags that were decided on.
    """

    run: int | None
    decisions: int
    finished: int
    kept: int
    edited: list[Text]
    tags: list[NamedTag]
    state: State


class Started(TypedDict):
    """Whether a job was started, and the state of background work."""

    started: bool
    fit: FitState


class StateAfter(TypedDict):
    """The state after a request that starts background work."""

    state: State
