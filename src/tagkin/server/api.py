"""Routes that answer with JSON. They are thin: what they say is made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from tagkin.catalogue import Decided, OpenSuggestion, Pair, Shown
from tagkin.errors import InvalidInput, NotFound
from tagkin.server import answers
from tagkin.server.overview import overview_answer, runs_answer
from tagkin.server.review import Review
from tagkin.server.thumbnails import SIZES
from tagkin.templating import shown

__all__ = ["Cursor", "Doubted", "Number", "Some", "Strategy", "cursor", "review_of", "router"]

router = APIRouter(prefix="/api")

_MOST = 2**53  # a whole number that scripts hold as well
Number = Annotated[int, Field(ge=0, le=_MOST)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Some = Annotated[int, Query(ge=1, le=500)]
NOT_PLACED = "There is no map of this photograph yet: it is made after the next fit."
Strategy = Literal["most-right", "learn-most"]
Doubted = Literal["wrong", "missing", "accepted"]
Cursor = Annotated[str | None, Query(max_length=60)]
_FEW = 5  # tags that are named
_MANY = 20_000  # decisions in one step


_Confidence = Annotated[float, Field(ge=0, le=1)] | None
_Pair = tuple[Number, Number | Name]
_ShownPair = tuple[Number, Number | Name, _Confidence, Number | None]
_ShownContent = tuple[Number, _Confidence, Number | None]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Step(_Body):
    step: Annotated[str, Field(max_length=100)] | None = None
    """A name of the step. A window that got no answer sends the step again under its name."""


class Decisions(_Step):
    """The pairs of a content and a tag that a person accepts and rejects, in one step.

    A pair that a page asked about has two more parts: the confidence that the page showed and the
    run that suggested the tag, or null.
    """

    accept: list[_Pair | _ShownPair] = Field(default=[], max_length=_MANY)
    reject: list[_Pair | _ShownPair] = Field(default=[], max_length=_MANY)
    only_open: bool = False
    """Whether decisions that hold already, as those of another window, are kept."""
    together: bool = False
    """Whether the accepted pairs are the rest of a page, which nobody looked at one by one."""


class DecisionsOnTag(_Step):
    """The same for one tag: contents, alone or with confidence and run."""

    accept: list[Number | _ShownContent] = Field(default=[], max_length=_MANY)
    reject: list[Number | _ShownContent] = Field(default=[], max_length=_MANY)
    together: bool = False


class Undo(_Step):
    """Which run to undo: the last step, or one by number."""

    run: Number | None = None


class Redo(_Step):
    """Redo the run that was undone last."""


def review_of(request: Request) -> Review:
    """The review that an application is for."""
    found: Review = request.app.state.review
    return found


# --- what there is ---------------------------------------------------------------------------


@router.get("/state")
def state(request: Request) -> Any:
    """How many are left and what they are worth; asked again and again."""
    return review_of(request).state()


@router.get("/tags")
def tags(request: Request, start: Number = 0, n: Some = 200) -> Any:
    """Tags that have suggestions."""
    review = review_of(request)
    with review.readers.one() as catalogue:
        return answers.tags_answer(catalogue, review.order, start, n)


@router.get("/tags/complete")
def complete(request: Request, text: Annotated[str, Query(max_length=200)] = "") -> Any:
    """Tags for what was typed so far."""
    with review_of(request).readers.one() as catalogue:
        found = catalogue.tags.complete(text)
    return {"tags": [{"id": number, "name": name} for number, name in found]}


@router.get("/tags/{tag}/suggestions")
def suggestions(
    request: Request,
    tag: Number,
    n: Some = 60,
    after: Cursor = None,
) -> Any:
    """One page of a tag's suggestions, and pictures of the next made ready."""
    review = review_of(request)
    with review.readers.one() as catalogue:
        found = answers.suggestions_answer(catalogue, review.order, tag, n, cursor(after))
        ahead: list[int] = []
        if found["next"] is not None:
            later = review.order.suggestions(catalogue, tag, n, cursor(found["next"]))
            ahead = [one.content for one in later]
    review.wish_for(ahead, SIZES[0])
    return found


@router.get("/question")
def question(request: Request, strategy: Strategy = "most-right") -> Any:
    """What to ask next: a page of one tag, by right tags per action, or by what it teaches."""
    review = review_of(request)
    with review.readers.one() as catalogue:
        return answers.question_answer(catalogue, review.order, strategy)


@router.get("/photographs/next")
def next_photograph(request: Request, after: Number = 0) -> Any:
    """The next photograph that has suggestions, whole; none is left where it is null."""
    review = review_of(request)
    with review.readers.one() as catalogue:
        content = answers.next_photograph(catalogue, after)
        found = (
            None if content is None else answers.photograph_answer(catalogue, review.order, content)
        )
    if found is not None and found["next"] is not None:
        review.wish_for([found["next"]], SIZES[-1])
    return {"photograph": found}


@router.get("/photographs/{content}")
def photograph(request: Request, content: Number) -> Any:
    """A photograph: suggestions, kin, and tags with who says so."""
    review = review_of(request)
    with review.readers.one() as catalogue:
        found = answers.photograph_answer(catalogue, review.order, content)
    if found["next"] is not None:
        review.wish_for([found["next"]], SIZES[-1])
    return found


@router.get("/photographs/{content}/similar")
def similar(request: Request, content: Number, n: Some = 60) -> Any:
    """Photographs nearest to this one in the semantic space."""
    review = review_of(request)
    found = review.map.similar(content, n)
    if found is None:
        raise NotFound(NOT_PLACED)
    with review.readers.one() as catalogue:
        return {"photographs": answers.similar_answer(catalogue, found)}


@router.get("/map")
def collection_map(request: Request) -> Any:
    """The collection in the plane; null where nothing was learned yet."""
    return {"map": review_of(request).map.drawn()}


@router.get("/doubts")
def doubts(
    request: Request,
    kind: Doubted | None = None,
    n: Some = 60,
    start: Number = 0,
) -> Any:
    """Tags that seem wrong, or missing, or were accepted with others and may be wrong."""
    review = review_of(request)
    with review.readers.one() as catalogue:
        return answers.doubts_answer(catalogue, review.order, kind, n, start)


@router.get("/search")
def search(
    request: Request,
    tag: Annotated[list[Number] | None, Query(max_length=20)] = None,
    untagged: bool = False,
    name: Annotated[str | None, Query(max_length=200)] = None,
    n: Some = 60,
    after: Number = 0,
) -> Any:
    """Photographs by tag, by name, or without tags."""
    with review_of(request).readers.one() as catalogue:
        return answers.search_answer(
            catalogue, tags=tag or [], untagged=untagged, name=name, n=n, after=after
        )


@router.get("/overview")
def overview(request: Request) -> Any:
    """How much is tagged, quality per tag, the last runs."""
    review = review_of(request)
    with review.readers.one() as catalogue:
        return overview_answer(catalogue, review.order)


@router.get("/runs")
def runs(request: Request, n: Some = 50) -> Any:
    """The last runs."""
    with review_of(request).readers.one() as catalogue:
        return {"runs": runs_answer(catalogue, catalogue.runs.history(n))}


def cursor(text: str | None) -> OpenSuggestion | None:
    """Where a part of a list of suggestions ended."""
    if text is None:
        return None
    sure, _, content = text.partition(":")
    try:
        found = OpenSuggestion(int(content), "", float(sure))
    except ValueError:
        found = None
    if found is None or not 0 <= found.content <= _MOST:
        raise InvalidInput("`after` is not where a part of the list ended.")
    return found


# --- what is done ------------------------------------------------------------------------------


@router.post("/decisions")
def decide(request: Request, body: Decisions) -> Any:
    """Decide on tags of photographs, in one step."""
    yes, no = ([_asked(*pair) for pair in some] for some in (body.accept, body.reject))
    return _decided(review_of(request), yes, no, body.only_open, body)


@router.post("/tags/{tag}/decisions")
def decide_on_tag(request: Request, tag: Number, body: DecisionsOnTag) -> Any:
    """Decide on suggestions of a tag, in one step; decisions that hold already are kept."""
    yes, no = (
        [_asked(one, tag) if isinstance(one, int) else Shown(one[0], tag, *one[1:]) for one in some]
        for some in (body.accept, body.reject)
    )
    return _decided(review_of(request), yes, no, True, body)


def _asked(content: int, tag: int | str, *shown: Any) -> Pair | Shown:
    return Shown(content, tag, *shown) if shown else (content, tag)


def _decided(
    review: Review,
    yes: Sequence[Pair | Shown],
    no: Sequence[Pair | Shown],
    only_open: bool,
    body: Decisions | DecisionsOnTag,
) -> Any:
    """Decide, and say how many decisions were stored and how many stay unchanged."""
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


@router.post("/undo")
def undo(request: Request, body: Undo) -> Any:
    """Take back the last step, or a run."""
    review = review_of(request)
    return _taken_back(review, review.undo(body.run, step=body.step))


@router.post("/redo")
def redo(request: Request, body: Redo) -> Any:
    """Let what was taken back last hold again."""
    review = review_of(request)
    return _taken_back(review, review.redo(step=body.step))


def _taken_back(review: Review, done: Decided) -> Any:
    names = list(dict.fromkeys(one.tag for one in done.each))[:_FEW]
    with review.readers.one() as catalogue:
        numbers = catalogue.tags.numbers_of(names)
    return {
        "run": done.run,
        "decisions": len(done),
        "kept": done.n_kept,
        "tags": [{"id": numbers[name], "name": shown(name)} for name in names],
        "state": review.state(),
    }


@router.post("/fit")
def fit(request: Request) -> JSONResponse:
    """Learn anew, in the background."""
    review = review_of(request)
    started = review.start_fit()
    return JSONResponse({"started": started, "fit": review.fit.state()})
