"""Routes that answer with JSON, for the review's pages and for plug-ins of other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from tagkin.catalogue import Catalogue, Decided, OpenSuggestion, Shown, TagsChanged
from tagkin.catalogue.selection import Selection
from tagkin.errors import InvalidInput
from tagkin.server import answers, searching
from tagkin.server.asking import PAGE
from tagkin.server.filtering import MOST, Number, Selected
from tagkin.server.order import Reading
from tagkin.server.session import Review
from tagkin.server.writing import AskedWay

router = APIRouter()
PREFIX = "/api/v1"
"""The review's own pages ask here, and other programs: see docs/how-to.md#write-a-plug-in."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
PageSize = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str | None, Query(max_length=60)]
_N_NAMED = 5  # tags named in an answer
_MAX_DECISIONS = 20_000  # in one step

_Confidence = Annotated[float, Field(ge=0, le=1)] | None
_Pair = tuple[Number, Number | Name]
_ShownPair = tuple[Number, Number | Name, _Confidence, Number | None]


class Json(Response):
    """An answer as JSON, in ASCII because names of files may hold what UTF-8 cannot."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return an answer of plain data and data classes as JSON."""
        return json.dumps(content, default=asdict).encode("ascii")


class Step(BaseModel):
    """A step of a window."""

    model_config = ConfigDict(extra="forbid")

    step: Annotated[str, Field(max_length=100)] | None = None
    """The name of the step. A window that got no answer sends the step again with its name."""


class Decide(Step):
    """Accepted and rejected pairs of a content and a tag, in one step.

    A pair from a page may have two more parts: the shown confidence and the run that suggested
    the tag, or null.
    """

    accept: list[_Pair | _ShownPair] = Field(default=[], max_length=_MAX_DECISIONS)
    reject: list[_Pair | _ShownPair] = Field(default=[], max_length=_MAX_DECISIONS)
    only_open: bool = False
    """Whether to keep existing decisions, such as decisions of another window."""
    together: bool = False
    """Whether the accepted pairs are the rest of a page, accepted without a look at each."""
    left: list[tuple[Number, Number]] = Field(default=[], max_length=_MAX_DECISIONS)
    """Pairs that the page showed and that stay open; they are not asked again until a training."""


class Finish(Step):
    """The contents of the photographs that are finished."""

    photographs: list[Number] = Field(min_length=1, max_length=_MAX_DECISIONS)


class Undo(Step):
    """The number of the run to undo; default: the last step."""

    run: Number | None = None


def review_of(request: Request) -> Review:
    """Return the review of an application."""
    review: Review = request.app.state.review
    return review


@contextmanager
def reading(
    request: Request, selection: Selection | None = None
) -> Iterator[tuple[Review, Reading]]:
    """Lend the review of an application, and what answers about selected photographs need."""
    review = review_of(request)
    with review.readers.connection() as catalogue:
        selected = None if selection is None else review.views.select(catalogue, selection)
        yield review, Reading(catalogue, review.order, selected)


# --- reading ---------------------------------------------------------------------------------


@router.get("/state")
def state(request: Request) -> Json:
    """Return the progress of the review, which pages poll."""
    return Json(review_of(request).state())


@router.get("/tags")
def tags(request: Request, selection: Selected, start: Number = 0, n: PageSize = 200) -> Json:
    """Return tags with suggestions."""
    with reading(request, selection) as (_, lent):
        return Json(answers.tags_answer(lent, start, n))


@router.get("/tags/complete")
def complete(request: Request, text: Annotated[str, Query(max_length=200)] = "") -> Json:
    """Return tags that complete a typed text."""
    with reading(request) as (_, lent):
        pairs = lent.catalogue.tags.complete(text)
    return Json({"tags": [{"id": number, "name": name} for number, name in pairs]})


@router.get("/tags/{tag}/suggestions")
def suggestions(
    request: Request, tag: Number, selection: Selected, n: PageSize = PAGE, after: Cursor = None
) -> Json:
    """Return a page of a tag's suggestions."""
    with reading(request, selection) as (_, lent):
        return Json(answers.suggestions_answer(lent, tag, n, cursor(after)))


@router.get("/photographs/at")
def photograph_at(request: Request, path: Annotated[str, Query(max_length=4096)]) -> Json:
    """Return a photograph's suggestions and tags.

    The path is absolute or from the root of the collection.
    """
    with reading(request) as (_, lent):
        from_root = lent.catalogue.relative(path) if os.path.isabs(path) else path
        content = lent.catalogue.photographs.content_of(from_root)
        return Json(answers.photograph_answer(lent, content))


@router.get("/map")
def collection_map(request: Request, selection: Selected) -> Json:
    """Return the map of the collection, without dots before the first training."""
    with reading(request, selection) as (review, lent):
        return Json(searching.map_answer(lent, review.map))


def cursor(text: str | None) -> OpenSuggestion | None:
    """Parse the end of the previous page of suggestions."""
    if text is None:
        return None
    confidence, _, content = text.partition(":")
    try:
        last = OpenSuggestion(int(content), "", float(confidence))
    except ValueError:
        last = None
    if last is None or not 0 <= last.content <= MOST:
        raise InvalidInput("`after` must be the `next` of an earlier answer.")
    return last


# --- deciding ----------------------------------------------------------------------------------


@router.post("/decisions")
def decide(request: Request, body: Decide) -> Json:
    """Decide on tags of photographs, in one step."""
    review = review_of(request)
    accepted, rejected = (
        [(pair[0], pair[1]) if len(pair) == 2 else Shown(*pair) for pair in pairs]
        for pairs in (body.accept, body.reject)
    )
    batch = review.decide(
        accepted,
        rejected,
        only_open=body.only_open,
        together=body.together,
        left=body.left,
        step=body.step,
    )
    return _step_answer(
        review,
        batch.run,
        accepted=len(batch.accepted),
        rejected=len(batch.rejected),
        already=batch.n_already,
        kept=batch.n_kept,
    )


def _step_answer(review: Review, run: int | None, **results: object) -> Json:
    """Answer with the run that undoes a step (None: no change), and the state after it."""
    return Json({"run": run, **results, "state": review.state()})


@router.post("/finish")
def finish(request: Request, body: Finish) -> Json:
    """Finish photographs, in one step."""
    review = review_of(request)
    finished = review.change(
        lambda catalogue: catalogue.completeness.finish_photographs(body.photographs), body.step
    )
    return _finish_answer(review, finished)


@router.post("/tags/{tag}/finish")
def finish_tag(request: Request, tag: Number, body: Step) -> Json:
    """Reject a tag for all photographs without an answer, in one step."""
    review = review_of(request)
    finished = review.change(lambda catalogue: catalogue.completeness.finish_tag(tag), body.step)
    return _finish_answer(review, finished)


def _finish_answer(review: Review, done: Decided) -> Json:
    return _step_answer(review, done.run, finished=len(done.finished), rejected=len(done))


@router.post("/undo")
def undo(request: Request, body: Undo) -> Json:
    """Undo the last step, or a run."""

    def undo_run(catalogue: Catalogue) -> Decided:
        decisions = catalogue.decisions
        return decisions.undo_last() if body.run is None else decisions.undo(body.run)

    return _undo_answer(review_of(request), undo_run, body.step)


@router.post("/redo")
def redo(request: Request, body: Step) -> Json:
    """Redo the last undone step."""
    return _undo_answer(
        review_of(request), lambda catalogue: catalogue.decisions.redo_last(), body.step
    )


def _undo_answer(review: Review, undo: Callable[[Catalogue], Decided], step: str | None) -> Json:
    done = review.change(undo, step)
    names = list(dict.fromkeys(decision.tag for decision in done.each))[:_N_NAMED]
    with review.readers.connection() as catalogue:
        numbers = catalogue.tags.numbers_of(names)
    return _step_answer(
        review,
        done.run,
        decisions=len(done),
        finished=len(done.finished),
        edited=list(done.edited),
        tags=[{"id": numbers[name], "name": name} for name in names],
    )


# --- tags --------------------------------------------------------------------------------------


class TagChange(Step):
    """A change of a tag, and the name that it gets."""

    what: Literal["rename", "merge", "forget", "restore"]
    into: Name | None = None


@router.post("/tags/{tag}/change")
def change_tag(request: Request, tag: Number, body: TagChange) -> Json:
    """Rename, merge, forget or restore a tag."""
    if (body.into is None) == (body.what in ("rename", "merge")):
        raise InvalidInput("Only a tag that is renamed or merged gets a name.")
    review = review_of(request)

    def change(catalogue: Catalogue) -> TagsChanged:
        return catalogue.tags.change(body.what, [catalogue.tags.count(tag).name], body.into)

    changed = review.change(change, body.step)
    return _step_answer(review, changed.run, photographs=changed.n_found)


@router.post("/fit")
def fit(request: Request) -> Json:
    """Retrain in the background."""
    review = review_of(request)
    return Json({"started": review.start_fit(), "fit": review.fit.state()})


@router.post("/common-tags")
def suggest_common_tags(request: Request) -> Json:
    """Suggest common tags by their names in the background, if there is nothing to learn from."""
    review = review_of(request)
    review.suggest_common_tags()
    return Json({"state": review.state()})


@router.post("/write")
def write(request: Request, way: AskedWay) -> Json:
    """Write the accepted tags of selected photographs into files, in the background."""
    review = review_of(request)
    review.writer.write(way)
    return Json({"state": review.state()})


@router.post("/write/{run}/undo")
def undo_write(request: Request, run: Number) -> Json:
    """Undo what a run wrote, in the background."""
    review = review_of(request)
    review.writer.undo(run)
    return Json({"state": review.state()})
