"""tagkin similar: the tagged photographs most similar to another one."""

from __future__ import annotations

from tagkin.cli import options
from tagkin.cli.catalogues import open_near
from tagkin.cli.output import progress_bar
from tagkin.cli.registry import command
from tagkin.cli.suggestions import NPhotos, report_similar


@command("similar")
def similar(
    photo: options.Photo,
    n: NPhotos = 10,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Find the tagged photographs most similar to a photograph.

    PHOTO is a photograph of the collection, or any other: then the current folder's collection is
    searched. The neighbours are near in the semantic space: similar in what they show, not only in
    how they look.

    Examples
    --------
    tagkin similar ~/Pictures/photo.jpg
    tagkin similar ~/Pictures/photo.jpg -n 30 --json
    """
    with progress_bar() as step:
        step("Opening the model", 0, 1)
        with open_near(photo, catalogue) as opened:
            annotator = opened.model.load()[0]
        (neighbours,) = annotator.similar([photo], n)
    report_similar(photo, neighbours, as_json)
