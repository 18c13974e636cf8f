"""tagkin map: a collection as a picture, in visual feature space and in the semantic space."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.files import check_target
from tagkin.cli.output import say, shown
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import open_model, photographs, report_problems
from tagkin.cli.tables import count
from tagkin.cli.with_catalogue import model_of_catalogue
from tagkin.errors import InvalidInput
from tagkin.progress import Progress

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin map --model my-tags --output map.png
  tagkin map new-photos --model my-tags --output new.png -n 500
"""


def run(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE.png", show_default=False, help="Where the map goes."
        ),
    ],
    model: options.ModelOrCatalogue = None,
    photos: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PHOTOS", show_default=False, hidden=True, readable=False),
    ] = None,
    tags: options.Tags = None,
    column: options.Column = None,
    n: Annotated[
        int,
        typer.Option(
            "-n",
            "--n-photos",
            metavar="N",
            min=1,
            help="Draw at most N photographs, chosen at random.",
        ),
    ] = 2000,
    overwrite: options.Overwrite = False,
    collection: options.Collection = None,
    seed: options.Seed = 0,
    cache: options.Cache = None,
    no_cache: options.NoCache = False,
    verbose: options.Verbose = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Draw a map: every photograph a dot, close to similar ones.

    PHOTOS are photographs and folders; by default those that the model learned from.

    Photographs are arranged by visual features on the left, and by the semantic space on the
    right. Colours stand for tags.
    """
    check_target(output, overwrite, (".png",))
    with progress_bar() as step:
        folder, root = (model, None) if model else model_of_catalogue(catalogue)
        annotator = open_model(folder, cache, no_cache, collection, step, photos=photos, root=root)
        files, rows, problems = _chosen(annotator, photos, tags, column, n, seed, step)
        seen = annotator.read_features(files, progress=step)
        if not seen.files:
            raise InvalidInput(
                f"None of the {len(files):,} photographs can be read any more; the first was "
                f"{files[0]} ({seen.failures[0].reason}). If they have moved, name their folder "
                "with --collection DIR, or name photographs to draw."
            )
        tags_of = dict(zip(files, rows, strict=True))
        _draw(annotator, seen, [tags_of[file] for file in seen.files], output, seed, step)
    report_problems([*problems, *seen.failures], verbose)
    say(f"{count(len(seen.files), 'photograph', 'photographs')} drawn: {shown(output)}")


def _chosen(
    annotator: Annotator,
    photos: list[Path] | None,
    tags: Path | None,
    column: str | None,
    n: int,
    seed: int,
    step: Progress,
) -> tuple[list[str], list[Any], list[Any]]:
    """At most n photographs and their tags, chosen by the seed, in their order; what failed."""
    import random

    if photos:
        found = photographs(photos, tags, column, step)
        files, rows, problems = list(found.files), list(found.tags), list(found.failures)
    else:
        problems = []
        files, rows = list(annotator.paths_), list(annotator.tags_)
    few = random.Random(seed).sample(range(len(files)), min(n, len(files)))  # noqa: S311
    return [files[i] for i in sorted(few)], [rows[i] for i in sorted(few)], problems


def _draw(
    annotator: Annotator, seen: Any, rows: list[Any], output: Path, seed: int, step: Progress
) -> None:
    from tagkin.pages import draw_map, lay_out

    step("Laying out visual feature space", 0, 1)
    layouts = {"In visual feature space": lay_out(seen.features, seed)}
    step("Laying out the semantic space", 0, 1)
    layouts["In the semantic space"] = lay_out(annotator.space_.transform(seen.features), seed)
    step("Drawing", 0, 1)
    draw_map(layouts, seen.files, annotator.vocabulary_.spelled(rows), output)
