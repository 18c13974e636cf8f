"""Photographs like another one, for `tagkin find --like`."""

from __future__ import annotations

from pathlib import Path

from tagkin.cli.catalogues import open_near
from tagkin.cli.output import data, document, progress_bar, relative, send_json
from tagkin.cli.tables import file_table

__all__ = ["find_like"]


def find_like(photo: Path, n: int, as_json: bool, catalogue: Path | None) -> None:
    """Show the tagged photographs most similar to a photograph."""
    with progress_bar() as step:
        step("Opening the model", 0, 1)
        with open_near(photo, catalogue) as opened:
            annotator = opened.model.load()[0]
        (neighbours,) = annotator.similar([photo], n)
    if as_json:
        similar = [document(neighbour) for neighbour in neighbours]
        send_json({"file": relative(photo), "similar": similar})
        return
    table = file_table("Photograph", "Similarity", "Tags")
    for neighbour in neighbours:
        tags = ", ".join(neighbour.tags)
        table.add_row(relative(neighbour.file), f"{neighbour.similarity:.2f}", tags)
    data().print(table)
