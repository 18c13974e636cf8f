"""Routes of pages and pictures; templates, scripts and styles."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Annotated, Literal
from urllib.parse import urlencode

import anyio
from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment

from tagkin.catalogue import Catalogue, DecisionCounts, PastRun
from tagkin.catalogue.selection import Selection
from tagkin.errors import InvalidInput, NotFound
from tagkin.server import answers, by_event, searching
from tagkin.server.answers import LIKELY
from tagkin.server.api import Cursor, PageSize, cursor, reading, review_of
from tagkin.server.asking import PAGE
from tagkin.server.filtering import FilterBar, Number, Selected, facets_answer
from tagkin.server.order import Order, Reading
from tagkin.server.stacks import Answer
from tagkin.server.thumbnail_cache import CLOSER, SIZES, Thumbnail
from tagkin.server.writing import AskedWay
from tagkin.templating import shown, template_environment
from tagkin.wording import percent, quote_tags

router = APIRouter()

Doubted = Literal["wrong", "missing", "accepted"]
Strategy = Literal["most-right", "learn-most"]
_Passed = Annotated[
    str, Query(alias="not", pattern="^([0-9]{1,16}(,[0-9]{1,16})*)?$", max_length=2000)
]
Words = Annotated[str, Query(max_length=200)]
_CACHED = "private, max-age=86400, immutable"  # every review has new addresses
_SHORT = "private, max-age=60"
_N_PASSED = 100  # events that do not come again at once
_N_TAGS, _N_RUNS = 300, 30
_N_NAMED = 3  # tags named per run
_MAX_DECISIONS = 1000  # a run with more is described without its tags
_N_WRITES = 5  # past runs that the write page lists
N_PICTURES = 4  # made or read at the same time, so other answers need not wait


def review_page(request: Request, mode: str, selection: Selection, **data: object) -> HTMLResponse:
    """Return a page of the review with a template, its filters and the state."""
    review = review_of(request)
    with review.readers.connection() as catalogue:
        filters = FilterBar(request, catalogue, selection)
    data |= {
        name: filters.link(str(data[name])) for name in ("address", "next_address") if name in data
    }
    data |= {"state": review.state(), "filters": filters, "link": filters.link}
    base = request.base_url.path
    template = "little" if "rest" in data else mode
    return HTMLResponse(render(f"{template}.html.jinja", base=base, mode=mode, **data))


@router.get("/")
def home() -> RedirectResponse:
    """Redirect to the by-tag mode."""
    return RedirectResponse("tags", status_code=303)


@router.get("/tags")
def tags(request: Request, selection: Selected) -> HTMLResponse:
    """List the tags with suggestions."""
    with reading(request, selection) as (review, lent):
        review.views.prepare()
        answer = answers.tags_answer(lent, 0, 200)
    return review_page(request, "tags", selection, answer=answer)


@router.get("/tags/{tag}")
def tag(
    request: Request, tag: Number, selection: Selected, n: PageSize = PAGE, after: Cursor = None
) -> HTMLResponse:
    """Show the suggestions of a tag as a grid."""
    with reading(request, selection) as (_, lent):
        last = cursor(after)
        if last is not None and lent.order.rank(lent.catalogue, tag) is not None:
            # what follows may have risen above the end of the former page
            lent, last = replace(lent, is_of_unseen=True), None
        answer = answers.suggestions_answer(lent, tag, n, last)
        shown = _shown_of_tag(lent, answer)
    return review_page(request, "tag", selection, **shown, n_asked=n, strategy=None)


def _shown_of_tag(lent: Reading, answer: Answer) -> Answer:
    """Return what the page of a tag shows: suggestions by event, above and below the line."""
    cards = answer["suggestions"]
    likely = [card for card in cards if card["confidence"] >= LIKELY]
    unlikely = [card for card in cards if card["confidence"] < LIKELY]
    return {
        "answer": answer,
        "then": answers.next_tag(lent, answer["tag"].id),
        "likely": by_event.group_cards(lent.catalogue, likely),
        "unlikely": by_event.group_cards(lent.catalogue, unlikely),
    }


@router.get("/question")
def question(
    request: Request,
    selection: Selected,
    strategy: Strategy = "most-right",
    pays_little: bool = False,
) -> HTMLResponse:
    """Show the best page to ask, of any tag; first say if even that pays little.

    Without answers nothing is said, because a person has to begin somewhere.
    """
    with reading(request, selection) as (review, lent):
        answer = answers.question_answer(lent, strategy)
        shown = {} if answer is None else _shown_of_tag(lent, answer)
        progress = lent.catalogue.suggestions.progress()
    if answer is None:
        return tags(request, selection)
    is_told = pays_little or not (progress.n_accepted or progress.n_rejected)
    if strategy == "most-right" and not (answer["pays"] or is_told):
        return review_page(request, "tag", selection, rest=review.rest())
    return review_page(request, "tag", selection, **shown, n_asked=None, strategy=strategy)


@router.get("/events")
def next_event(request: Request, selection: Selected, passed: _Passed = "") -> Response:
    """Lead to the event that pays most, among those that nobody passed."""
    with reading(request, selection) as (review, lent):
        events = review.views.events(lent.catalogue)
        index = review.views.suggestions(lent.catalogue)
        content = by_event.next_event(
            lent, events, index, [*map(int, filter(None, passed.split(",")))]
        )
    if content is None:
        return review_page(request, "event", selection, answer=None)
    query = urlencode(request.query_params.multi_items())
    return RedirectResponse(f"events/{content}{'?' * bool(query)}{query}", status_code=303)


@router.get("/events/{content}")
def event(
    request: Request, content: Number, selection: Selected, passed: _Passed = ""
) -> HTMLResponse:
    """Show the event of a photograph; if it is alone, the photograph."""
    with reading(request, selection) as (review, lent):
        events = review.views.events(lent.catalogue)
        answer = by_event.event_answer(lent, by_event.members_of(lent, events, content))
    if len(answer["cards"]) < 2:
        return photograph(request, content, selection, passed)
    addresses = _addresses("events", content, passed)
    return review_page(request, "event", selection, answer=answer, **addresses)


@router.get("/photographs/{content}")
def photograph(
    request: Request, content: Number, selection: Selected, passed: _Passed = ""
) -> HTMLResponse:
    """Show a photograph."""
    with reading(request, selection) as (review, lent):
        answer = answers.photograph_answer(lent, content)
        members = by_event.members_of(lent, review.views.events(lent.catalogue), content)
    burst = {member["content"] for member in answer["members"]}
    at = members.index(content) if content in members else len(members)
    shown = {
        "n_in_event": len(members),
        "following": next((member for member in members[at + 1 :] if member not in burst), None),
    }
    addresses = _addresses("photographs", content, passed)
    return review_page(request, "photograph", selection, answer=answer, **shown, **addresses)


def _addresses(what: str, content: int, passed: str) -> Answer:
    """Return the address of an event or photograph, and that of the next event."""
    numbers = [*filter(None, passed.split(",")), str(content)][-_N_PASSED:]
    own = f"?{urlencode({'not': passed}, safe=',')}" if passed else ""
    then = urlencode({"not": ",".join(numbers)}, safe=",")
    return {"address": f"{what}/{content}{own}", "next_address": f"events?{then}"}


@router.get("/doubtful")
def doubtful(
    request: Request,
    selection: Selected,
    kind: Doubted | None = None,
    start: Number = 0,
) -> HTMLResponse:
    """Show tags that seem wrong or missing, or doubtful accepted tags."""
    with reading(request, selection) as (_, lent):
        answer = answers.doubts_answer(lent, kind, PAGE, start)
    return review_page(request, "doubtful", selection, answer=answer, kind=kind)


@router.get("/search")
def search(
    request: Request,
    selection: Selected,
    name: Words = "",
    words: Words = "",
    similar: Number | None = None,
    typed: Annotated[str, Query(alias="with", max_length=200)] = "",
    n: PageSize = PAGE,
    after: Number = 0,
) -> Response:
    """Show selected photographs, by name, by words, or similar to another.

    The first tag that a typed text completes becomes a filter.
    """
    with reading(request) as (_, lent):
        tags = lent.catalogue.tags.complete(typed.strip()) if typed.strip() else []
    if tags:
        pairs = [(k, v) for k, v in request.query_params.multi_items() if v and k != "with"]
        query = urlencode([*pairs, ("tag", tags[0][0])])
        return RedirectResponse(f"search?{query}", status_code=303)
    if typed.strip():
        answer: Answer = {"photographs": [], "next": None, "note": f"There is no tag {typed}."}
    elif similar is not None:
        with reading(request, selection) as (review, lent):
            answer = searching.similar_answer(lent, review.map, similar, n)
    elif words.strip():
        answer = _find_by_words(request, selection, words, name, n=n, after=after)
    else:
        with reading(request, selection) as (_, lent):
            answer = searching.search_answer(lent, name, n, after)
    asked = {"name": name, "words": words, "similar": similar}
    return review_page(request, "search", selection, answer=answer, asked=asked)


def _find_by_words(
    request: Request, selection: Selection, words: str, name: str, *, n: int, after: int
) -> Answer:
    """Return selected photographs that words describe, the best matches first."""
    try:
        ranking = review_of(request).words.rank(words)
    except InvalidInput as error:  # the words mean nothing here
        return {"photographs": [], "next": None, "note": str(error)}
    with reading(request, selection) as (_, lent):
        return searching.words_answer(lent, ranking, name, n, after)


@router.get("/filters")
def filters(request: Request, selection: Selected) -> HTMLResponse:
    """Show the choices of each filter with their counts; a part of other pages."""
    with reading(request) as (review, lent):
        facets = facets_answer(lent.catalogue, review.views, selection)
    return HTMLResponse(render("choices.html.jinja", facets=facets))


@router.get("/write")
def write(request: Request, way: AskedWay) -> HTMLResponse:
    """Show what would be written into which files, and the last writes."""
    review = review_of(request)
    job, plan = review.writer.state(), review.writer.plan(way, review.version)
    with review.readers.connection() as catalogue:
        runs = runs_answer(catalogue, catalogue.runs.history(_N_WRITES, what="write"))
        place = catalogue.server
    shown = {"job": job, "plan": plan, "runs": runs, "way": way, "server": place}
    return review_page(request, "write", way.selection, **shown)


@router.get("/overview")
def overview(request: Request, selection: Selected) -> HTMLResponse:
    """Show how much is tagged, the quality of tags, and the last runs."""
    with reading(request) as (review, lent):
        answer = _overview_answer(lent.catalogue, lent.order)
        index = review.views.suggestions(lent.catalogue)
        _, waiting, _ = lent.order.likely(lent.catalogue, index, LIKELY)
        years = by_event.list_years(review.views.months(lent.catalogue, waiting))
    return review_page(request, "overview", selection, answer=answer, years=years)


def _overview_answer(catalogue: Catalogue, order: Order) -> Answer:
    """Return how much is tagged, the quality of the most frequent tags, and the last runs."""
    counts = catalogue.photographs.count()
    return {
        "folder": catalogue.source.title,
        "photographs": counts.n_photographs,
        "untagged": counts.n_untagged,
        "unreadable": counts.n_problems,
        "to_write": catalogue.writes.count_pending(),
        "tags": order.expect(catalogue, catalogue.tags.list_all()[:_N_TAGS]),
        "runs": runs_answer(catalogue, catalogue.runs.history(_N_RUNS)),
    }


def runs_answer(catalogue: Catalogue, runs: Sequence[PastRun]) -> list[Answer]:
    """Return runs with their results, and whether a page can undo them."""
    numbers = [run.id for run in runs]
    undoable = catalogue.runs.list_undoable(numbers)
    decided = catalogue.runs.count_decisions(numbers)
    return [
        {
            "id": run.id,
            "what": run.what,
            "started_at": run.started_at,
            "said": _describe(catalogue, run, decided.get(run.id)),
            "undone_by": run.undone_by,
            "can_undo": run.id in undoable,
        }
        for run in runs
    ]


def _describe(catalogue: Catalogue, run: PastRun, decided: DecisionCounts | None) -> str:
    """Describe a run with the first tags that a person decided on, unless these are very many."""
    if run.ended_at is None:
        return f"{run.what}: not finished"
    text = run.describe(decided)
    text = text[0].upper() + text[1:]
    n_decided = 0 if decided is None else decided.n_accepted + decided.n_rejected
    if not 0 < n_decided <= _MAX_DECISIONS or run.parameters.get("tags"):
        return text
    names = [name for name, _, _ in catalogue.runs.tags_decided_by(run.id)]
    return f"{text}: {quote_tags(names, _N_NAMED)}"


# --- pictures -----------------------------------------------------------------------------------


@router.get("/tags/{tag}/pictures/{k}")
def picture_of_tag(
    request: Request, tag: Number, k: Annotated[int, Path(ge=0, lt=4)], selection: Selected
) -> Response:
    """Lead to the picture of one of the most confident suggestions of a tag."""
    with reading(request, selection) as (_, lent):
        contents = [s.content for s in lent.suggestions(tag, k + 1)][k:]
        files = lent.catalogue.photographs.files_of(contents)
    if not files:
        raise NotFound("There is no such picture.")
    (file,) = files.values()
    address = request.base_url.path + answers.picture_address(file, SIZES[0])
    return RedirectResponse(address, headers={"cache-control": _SHORT})


@router.get("/thumbnails/{size}/{content}-{digest}.jpg")
async def thumbnail(
    request: Request,
    size: Number,
    content: Number,
    digest: Annotated[str, Path(pattern="^[0-9a-f]{16}$")],
) -> Response:
    """Send a picture of a photograph, which the browser caches for a day."""
    limiter: anyio.CapacityLimiter = request.app.state.pictures
    picture = await run_sync(_make_picture, request, size, content, digest, limiter=limiter)
    if picture is None:
        return Response("There is no such picture.", 404, media_type="text/plain")
    caching = {"cache-control": _CACHED if picture.is_final else _SHORT}
    return Response(picture.data, media_type=picture.kind, headers=caching)


def _make_picture(request: Request, size: int, content: int, digest: str) -> Thumbnail | None:
    review = review_of(request)
    file = review.file_of(content) if size in (*SIZES, CLOSER) else None
    if file is None or not file[1].startswith(digest):
        return None
    return review.thumbnails.picture(*file, size)


# --- templates, scripts and styles ----------------------------------------------------------------

mimetypes.add_type("text/javascript", ".js")  # which Windows may call plain text


class Assets(StaticFiles):
    """The files in ``static``, which a browser keeps for a day."""

    def __init__(self) -> None:
        # some installers link the files of a package to their cache
        super().__init__(packages=[(__package__, "static")], follow_symlink=True)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Find a file; early versions of Starlette raise an error where a name has a NUL."""
        return ("", None) if "\0" in path else super().lookup_path(path)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, *args: object
    ) -> Response:
        """Return a file, or that the browser has it already."""
        response = super().file_response(full_path, stat_result, *args)  # type: ignore[arg-type]
        response.headers["cache-control"] = _CACHED
        return response


def render(template: str, **data: object) -> str:
    """Render a page; every text in it is escaped."""
    return shown(_environment().get_template(template).render(data))


@cache
def _environment() -> Environment:
    environment = template_environment(
        "tagkin.server",
        percent=percent,
        thousands=lambda n: f"{n:,.0f}",
        basename=lambda path: os.path.basename(path) or path,
    )
    static = resources.files("tagkin.server") / "static"
    scripts = sorted(file.name for file in static.iterdir() if file.name.endswith(".js"))
    environment.globals["modules"] = scripts
    return environment
