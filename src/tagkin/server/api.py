"""Routes that answer with JSON, for the review's pages and for other programs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from tagkin.catalogue import Decided, OpenSuggestion, Pair, Shown
from tagkin.catalogue.selection import Selection
from tagkin.collection.sidecars import Convention
from tagkin.errors import InvalidInput, NotFound
from tagkin.server import answer_models, answers
from tagkin.server.filtering import Selected, facets_answer
from tagkin.server.order import Reading
from tagkin.server.overview import overview_answer, runs_answer
from tagkin.server.session import Review
from tagkin.server.thumbnail_cache import SIZES
from tagkin.server.writing import Way
from tagkin.templating import shown

router = APIRouter()
PREFIX = "/api"
VERSIONED = f"{PREFIX}/v1"
"""Programs other than the review's own pages ask here: see docs/how-to.md#write-a-plug-in."""

_MOST = 2**53  # the largest whole number in JavaScript
Number = Annotated[int, Field(ge=0, le=_MOST)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Words = Annotated[str, Query(max_length=200)]
PageSize = Annotated[int, Query(ge=1, le=500)]
NOT_PLACED = "This photograph is not on the map yet. It appears after the next training."
Strategy = Literal["most-right", "learn-most"]
Doubted = Literal["wrong", "missing", "accepted"]
Cursor = Annotated[str | None, Query(max_length=60)]
_N_SIMILAR = 20_000  # nearest photographs that are compared with filters
_N_NAMED = 5  # tags named in an answer
_MAX_DECISIONS = 20_000  # in one step

_Confidence = Annotated[float, Field(ge=0, le=1)] | None
_Pair = tuple[Number, Number | Name]
_ShownPair = tuple[Number, Number | Name, _Confidence, Number | None]
_ShownContent = tuple[Number, _Confidence, Number | None]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Step(_Body):
    step: Annotated[str, Field(max_length=100)] | None = None
    """The name of the step. A window that got no answer sends the step again with its name."""


class Decisions(_Step):
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


class DecisionsOnTag(_Step):
    """Decisions on one tag: contents, alone or with confidence and run."""

    accept: list[Number | _ShownContent] = Field(default=[], max_length=_MAX_DECISIONS)
    reject: list[Number | _ShownContent] = Field(default=[], max_length=_MAX_DECISIONS)
    together: bool = False


class Finish(_Step):
    """The contents of the photographs that are finished."""

    photographs: list[Number] = Field(min_length=1, max_length=_MAX_DECISIONS)


class FinishTag(_Step):
    """Finish a tag on all photographs."""


class Write(_Body):
    """How to write the accepted tags."""

    embed: bool = False
    """Whether they go into the photographs themselves."""
    sidecars: Convention | None = None
    """How to name new sidecars."""
    remove: bool = False
    """Whether rejected tags are removed from files."""


class UndoWrite(_Body):
    """The number of the run that wrote."""

    run: Number


class Undo(_Step):
    """The number of the run to undo; default: the last step."""

    run: Number | None = None


class Redo(_Step):
    """Redo the last undone run."""


def _returns(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """Describe an answer for OpenAPI; unlike `response_model`, it filters nothing."""
    return {200: {"model": model}, "default": {"model": answer_models.Error}}


def review_of(request: Request) -> Review:
    """Return the review of an application."""
    review: Review = request.state.review
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


@router.get("/state", responses=_returns(answer_models.State))
def state(request: Request) -> Any:
    """Return the progress of the review, which pages poll."""
    return review_of(request).state()


@router.get("/tags", responses=_returns(answer_models.TagPage))
def tags(request: Request, selection: Selected, start: Number = 0, n: PageSize = 200) -> Any:
    """Return tags with suggestions."""
    with reading(request, selection) as (_, lent):
        return answers.tags_answer(lent, start, n)


@router.get("/tags/complete", responses=_returns(answer_models.Completions))
def complete(
    request: Request, text: Annotated[str, Query(max_length=200)] = "", others: bool = False
) -> Any:
    """Return tags that complete a typed text; with `others`, also folders, places and people."""
    with reading(request) as (_, lent):
        return answers.completions_answer(lent.catalogue, text, others)


@router.get("/tags/{tag}/suggestions", responses=_returns(answer_models.SuggestionPage))
def suggestions(
    request: Request, tag: Number, selection: Selected, n: PageSize = 60, after: Cursor = None
) -> Any:
    """Return a page of a tag's suggestions, and prefetch the thumbnails of the next page."""
    with reading(request, selection) as (review, lent):
        answer = answers.suggestions_answer(lent, tag, n, cursor(after))
        upcoming: list[int] = []
        if answer["next"] is not None:
            later = lent.suggestions(tag, n, cursor(answer["next"]))
            upcoming = [suggestion.content for suggestion in later]
    review.prefetch_thumbnails(upcoming, SIZES[0])
    return answer


@router.get("/photographs/next", responses=_returns(answer_models.NextPhotograph))
def next_photograph(request: Request, selection: Selected, after: Number = 0) -> Any:
    """Return the next photograph with suggestions, or null."""
    with reading(request, selection) as (review, lent):
        answer = answers.next_photograph_answer(lent, after)
    if answer is not None and answer["next"] is not None:
        review.prefetch_thumbnails([answer["next"]], SIZES[-1])
    return {"photograph": answer}


@router.get("/photographs/at", responses=_returns(answer_models.Photograph))
def photograph_at(request: Request, path: Annotated[str, Query(max_length=4096)]) -> Any:
    """Return a photograph as `/photographs/{content}` does, by its path.

    The path is absolute or from the root of the collection.
    """
    with reading(request) as (_, lent):
        from_root = lent.catalogue.relative(path) if os.path.isabs(path) else path
        return answers.photograph_answer(lent, lent.catalogue.photographs.content_of(from_root))


@router.get("/photographs/{content}", responses=_returns(answer_models.Photograph))
def photograph(request: Request, content: Number, selection: Selected) -> Any:
    """Return a photograph's suggestions with their kin, and its tags with their sources."""
    with reading(request, selection) as (review, lent):
        answer = answers.photograph_answer(lent, content)
    if answer["next"] is not None:
        review.prefetch_thumbnails([answer["next"]], SIZES[-1])
    return answer


@router.get("/photographs/{content}/similar")
def similar(request: Request, content: Number, selection: Selected, n: PageSize = 60) -> Any:
    """Return the nearest photographs in the semantic space."""
    return {"photographs": find_similar(request, content, n, selection)}


def find_similar(
    request: Request, content: int, n: int, selection: Selection
) -> list[dict[str, Any]]:
    """Return cards of the nearest selected photographs."""
    similar_to = review_of(request).map.similar
    nearest = similar_to(content, n if selection.is_empty else _N_SIMILAR)
    if nearest is None:
        raise NotFound(NOT_PLACED)
    with reading(request, selection) as (_, lent):
        return answers.similar_answer(lent, nearest, n)


@router.get("/map")
def collection_map(request: Request, selection: Selected) -> Any:
    """Return the map of the collection with the selected dots; null before the first training."""
    with reading(request, selection) as (review, lent):
        drawn, selected = review.map.drawn(), lent.selected
    if drawn is not None:
        contents = drawn["contents"]
        has = None if selected is None else selected.photographs.has(contents).tolist()
        drawn["selected"] = [True] * len(contents) if has is None else has
    return {"map": drawn}


@router.get("/map/photographs")
def photographs_on_map(
    request: Request, content: Annotated[list[Number], Query(min_length=1, max_length=100)]
) -> Any:
    """Return names and pictures of photographs."""
    with reading(request) as (_, lent):
        files = lent.catalogue.photographs.files_of(content)
    return {"photographs": [answers.card(file) for file in files.values()]}


@router.get("/doubts")
def doubts(
    request: Request,
    selection: Selected,
    kind: Doubted | None = None,
    n: PageSize = 60,
    start: Number = 0,
) -> Any:
    """Return tags that seem wrong or missing, or doubtful accepted tags."""
    with reading(request, selection) as (_, lent):
        return answers.doubts_answer(lent, kind, n, start)


@router.get("/search", responses=_returns(answer_models.Results))
def search(
    request: Request,
    selection: Selected,
    name: Annotated[str | None, Query(max_length=200)] = None,
    words: Words = "",
    n: PageSize = 60,
    after: Number = 0,
) -> Any:
    """Return selected photographs, by name; with words, the best matches first."""
    return search_by(request, selection, words, {"name": name, "n": n, "after": after})


def search_by(
    request: Request, selection: Selection, words: str, page: dict[str, Any]
) -> dict[str, Any]:
    """Return a page of `answers.search_answer`, in the order of words if any.

    `note` says so if words fit no photograph.
    """
    if not words.strip():
        with reading(request) as (review, lent):
            answer = answers.search_answer(lent.catalogue, review.views, selection, **page)
        return answer | {"note": ""}
    ranked, note = review_of(request).words.rank(words)
    with reading(request, selection) as (_, lent):
        return answers.words_answer(lent, ranked, **page) | {"note": note}


@router.get("/filters")
def filters(request: Request, selection: Selected) -> Any:
    """Return the choices of each filter with the number of photographs that each would leave."""
    with reading(request) as (review, lent):
        return {"filters": facets_answer(lent.catalogue, review.views, selection)}


@router.get("/overview")
def overview(request: Request) -> Any:
    """Return how much is tagged, the quality of tags, and the last runs."""
    with reading(request) as (_, lent):
        return overview_answer(lent.catalogue, lent.order)


@router.get("/runs")
def runs(request: Request, n: PageSize = 50) -> Any:
    """Return the last runs."""
    with reading(request) as (_, lent):
        return {"runs": runs_answer(lent.catalogue, lent.catalogue.runs.history(n))}


def cursor(text: str | None) -> OpenSuggestion | None:
    """Parse the end of the previous page of suggestions."""
    if text is None:
        return None
    confidence, _, content = text.partition(":")
    try:
        last = OpenSuggestion(int(content), "", float(confidence))
    except ValueError:
        last = None
    if last is None or not 0 <= last.content <= _MOST:
        raise InvalidInput("`after` must be the `next` of an earlier answer.")
    return last


# --- deciding ----------------------------------------------------------------------------------


@router.post("/decisions", responses=_returns(answer_models.Decided))
def decide(request: Request, body: Decisions) -> Any:
    """Decide on tags of photographs, in one step."""
    yes, no = ([_pair(*parts) for parts in pairs] for pairs in (body.accept, body.reject))
    return _decide(review_of(request), yes, no, body.only_open, body)


@router.post("/tags/{tag}/decisions", responses=_returns(answer_models.Decided))
def decide_on_tag(request: Request, tag: Number, body: DecisionsOnTag) -> Any:
    """Decide on open suggestions of a tag, in one step."""
    yes, no = (
        [_pair(c, tag) if isinstance(c, int) else _pair(c[0], tag, *c[1:]) for c in contents]
        for contents in (body.accept, body.reject)
    )
    return _decide(review_of(request), yes, no, True, body)


def _pair(content: int, tag: int | str, *shown: Any) -> Pair | Shown:
    return Shown(content, tag, *shown) if shown else (content, tag)


def _decide(
    review: Review,
    yes: Sequence[Pair | Shown],
    no: Sequence[Pair | Shown],
    only_open: bool,
    body: Decisions | DecisionsOnTag,
) -> Any:
    """Store decisions, and return how many are new and how many stay unchanged."""
    together, step = body.together, body.step
    batch = review.decide(yes, no, only_open=only_open, together=together, step=step)
    return {
        "run": batch.run,
        "accepted": len(batch.accepted),
        "rejected": len(batch.rejected),
        "already": batch.n_already,
        "kept": batch.n_kept,
        "state": review.state(),
    }


@router.post("/finish")
def finish(request: Request, body: Finish) -> Any:
    """Finish photographs, in one step."""
    review = review_of(request)
    return _finish_answer(review, review.finish_photographs(body.photographs, step=body.step))


@router.post("/tags/{tag}/finish")
def finish_tag(request: Request, tag: Number, body: FinishTag) -> Any:
    """Reject a tag for all photographs without an answer, in one step."""
    review = review_of(request)
    return _finish_answer(review, review.finish_tag(tag, step=body.step))


def _finish_answer(review: Review, done: Decided) -> Any:
    return {
        "run": done.run,
        "finished": len(done.finished),
        "rejected": len(done),
        "state": review.state(),
    }


@router.post("/undo", responses=_returns(answer_models.Undone))
def undo(request: Request, body: Undo) -> Any:
    """Undo the last step, or a run."""
    review = review_of(request)
    return _undo_answer(review, review.undo(body.run, step=body.step))


@router.post("/redo", responses=_returns(answer_models.Undone))
def redo(request: Request, body: Redo) -> Any:
    """Redo the last undone step."""
    review = review_of(request)
    return _undo_answer(review, review.redo(step=body.step))


def _undo_answer(review: Review, done: Decided) -> Any:
    names = list(dict.fromkeys(decision.tag for decision in done.each))[:_N_NAMED]
    with review.readers.connection() as catalogue:
        numbers = catalogue.tags.numbers_of(names)
    return {
        "run": done.run,
        "decisions": len(done),
        "finished": len(done.finished),
        "kept": done.n_kept,
        "edited": [shown(name) for name in done.edited],
        "tags": [{"id": numbers[name], "name": shown(name)} for name in names],
        "state": review.state(),
    }


# --- tags --------------------------------------------------------------------------------------


class TagChange(_Step):
    """A change of a tag, and the name that it gets."""

    what: Literal["rename", "merge", "hide", "forget", "restore"]
    into: Name | None = None


@router.get("/tags/{tag}")
def tag_counts(request: Request, tag: Number) -> Any:
    """Return a tag with its counts."""
    with reading(request) as (_, lent):
        counts = lent.order.expect(lent.catalogue, [lent.catalogue.tags.count(tag)])
        return {"tag": answers.tag_row(counts[0])}


@router.post("/tags/{tag}/change")
def change_tag(request: Request, tag: Number, body: TagChange) -> Any:
    """Rename, merge, hide, forget or restore a tag."""
    if (body.into is None) == (body.what in ("rename", "merge")):
        raise InvalidInput("Only a tag that is renamed or merged gets a name.")
    review = review_of(request)
    changed = review.change_tag(tag, body.what, body.into, step=body.step)
    with review.readers.connection() as catalogue:
        now = catalogue.tags.count(tag)
    return {
        "run": changed.run,
        "tag": {"id": now.id, "name": shown(now.name), "hidden": now.is_hidden},
        "tags": [shown(name) for name in changed.tags],
        "photographs": changed.n_found,
        "state": review.state(),
    }


@router.post("/fit")
def fit(request: Request) -> JSONResponse:
    """Retrain in the background."""
    review = review_of(request)
    started = review.start_fit()
    return JSONResponse({"started": started, "fit": review.fit.state()})


@router.post("/common-tags")
def suggest_common_tags(request: Request) -> Any:
    """Suggest common tags by their names in the background, if there is nothing to learn from."""
    review = review_of(request)
    review.suggest_common_tags()
    return {"state": review.state()}


@router.post("/write")
def write(request: Request, body: Write, selection: Selected) -> Any:
    """Write the accepted tags of selected photographs into files, in the background."""
    review = review_of(request)
    review.writer.write(Way(body.embed, body.sidecars, body.remove, selection))
    return {"state": review.state()}


@router.post("/write/undo")
def undo_write(request: Request, body: UndoWrite) -> Any:
    """Undo what a run wrote, in the background."""
    review = review_of(request)
    review.writer.undo(body.run)
    return {"state": review.state()}
