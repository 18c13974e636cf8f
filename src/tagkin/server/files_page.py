"""Which files of the collection were read, incomplete folders, and the export of decisions."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from tagkin.catalogue.files_read import folders_of, read_files_read
from tagkin.catalogue.selection import Selection
from tagkin.errors import InvalidInput
from tagkin.server.api import PREFIX, Json, Step, review_of
from tagkin.server.pages import review_page, runs_answer

router = APIRouter()

_N_PROBLEMS, _N_FOLDERS, _N_RUNS = 200, 1000, 200


@router.get("/files")
def files(request: Request) -> HTMLResponse:
    """Show which files were read, which could not be, and which folders are incomplete."""
    review = review_of(request)
    with review.readers.connection() as catalogue:
        read = read_files_read(catalogue.database, _N_PROBLEMS)
        answer = {
            "folder": catalogue.source.title,
            "catalogue": str(catalogue.path),
            "server": catalogue.server,
            "photographs": catalogue.photographs.count().n_photographs,
            "read": read,
            "folders": folders_of(catalogue.database, _N_FOLDERS),
            "incomplete": runs_answer(
                catalogue, catalogue.runs.history(_N_RUNS, what="incomplete")
            ),
        }
        known = {catalogue.absolute(failure.file) for failure in read.problems}
    others = [failure for file, failure in review.fit.failures.items() if file not in known]
    return review_page(request, "files", Selection(), answer=answer, others=others)


class Incomplete(Step):
    """A folder whose tags are not complete, from the root; empty for the whole collection."""

    folder: Annotated[str, Field(max_length=4096)] = ""


@router.post(f"{PREFIX}/incomplete")
def declare_incomplete(request: Request, body: Incomplete) -> Json:
    """Declare that the tags in the files of a folder are not complete."""
    review = review_of(request)
    with review.readers.connection() as catalogue:
        if body.folder and body.folder not in folders_of(catalogue.database, 10**9):
            raise InvalidInput("There is no such folder in the collection.")
    done = review.change(lambda c: c.completeness.declare_incomplete(body.folder), body.step)
    return Json({"run": done.run, "photographs": done.n_photographs, "state": review.state()})


@router.get("/decisions.jsonl")
def export(request: Request) -> Response:
    """Send decisions, finished photographs and edits of tags, as `tagkin export` writes them."""
    with review_of(request).readers.connection() as catalogue:
        lines = [json.dumps(line) + "\n" for line in catalogue.export_lines()]
    headers = {"content-disposition": 'attachment; filename="tagkin-decisions.jsonl"'}
    return Response("".join(lines), media_type="application/jsonl", headers=headers)
