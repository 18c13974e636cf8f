"""Suggestions and similar photographs, as tables, CSV and JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli.output import csv_text, document, json_line, relative, send, shown
from tagkin.cli.streams import escape, unescape
from tagkin.cli.tables import file_table, show
from tagkin.wording import percent

if TYPE_CHECKING:
    from tagkin.annotator import PhotoSuggestions, Similar

NPhotos = Annotated[
    int, typer.Option("-n", metavar="N", min=1, help="Number of photographs to find.")
]

_COLUMNS = ["file_name", "tag", "confidence", "kin", "name_share", "readout_share"]


def send_json(suggested: Sequence[PhotoSuggestions]) -> None:
    """Write a line of JSON per photograph."""
    for photo in suggested:
        send(json_line(document(photo)))
    sys.stdout.flush()


def send_csv(suggested: Sequence[PhotoSuggestions], *, has_header: bool = True) -> None:
    """Write a row per suggestion; | separates kin, the largest shares first."""
    rows = (
        [
            relative(photo.file),
            s.tag,
            s.confidence,
            "|".join(relative(kin.file) for kin in s.kin),
            s.name_share,
            s.readout_share,
        ]
        for photo in suggested
        for s in photo.suggestions
    )
    send(csv_text(_COLUMNS if has_header else None, rows))
    sys.stdout.flush()


def list_suggestions(suggested: Sequence[PhotoSuggestions]) -> None:
    """Print a line per photograph, with its suggestions."""
    for photo in suggested:
        tags = ", ".join(f"{escape(s.tag)} {percent(s.confidence)}" for s in photo.suggestions)
        sys.stdout.write(unescape(f"{shown(photo.file)}  {tags}\n"))
    sys.stdout.flush()


def report_similar(photo: Path, neighbours: Sequence[Similar], as_json: bool) -> None:
    """Print the photographs most similar to a photograph."""
    if as_json:
        similar = [document(neighbour) for neighbour in neighbours]
        send(json_line({"file": relative(photo), "similar": similar}))
        return
    table = file_table("Photograph", "Similarity", "Tags")
    for neighbour in neighbours:
        tags = ", ".join(map(escape, neighbour.tags))
        table.add_row(shown(neighbour.file), f"{neighbour.similarity:.2f}", tags)
    show(table)
