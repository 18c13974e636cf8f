"""tagkin map: a collection as a picture, in visual feature space and in the semantic space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import open_with_model
from tagkin.cli.inputs import report_problems
from tagkin.cli.output import check_target, progress_bar, say, shown
from tagkin.cli.registry import command
from tagkin.errors import InvalidInput
from tagkin.wording import count

_SEED = 0


@command("map")
def draw(
    folder: options.Folder = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.png", help="The picture to write.")
    ] = Path("map.png"),
    n: Annotated[
        int,
        typer.Option(
            "-n", metavar="N", min=1, help="Draw at most N photographs, chosen at random."
        ),
    ] = 2000,
    overwrite: options.Overwrite = False,
    verbose: options.Verbose = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Draw a map: every photograph a dot, close to similar ones.

    FOLDER is the collection; the default is the current folder's. The map shows the photographs
    that its model learned from, arranged by visual features on the left and by the semantic space
    on the right. Colours stand for tags.

    Examples
    --------
    tagkin map ~/Pictures --output map.png
    tagkin map --output map.png -n 500 --overwrite
    """
    import random

    from tagkin.pages import draw_map, lay_out

    check_target(output, overwrite, (".png",))
    with progress_bar() as step:
        opened, annotator = open_with_model(folder, catalogue, "map", step)
        opened.close()
        files = list(annotator.paths_)
        chosen = sorted(random.Random(_SEED).sample(range(len(files)), min(n, len(files))))  # noqa: S311
        tags_of = {files[i]: annotator.tags_[i] for i in chosen}
        seen = annotator.read_features(list(tags_of), progress=step)
        if not seen.files:
            first = f"{seen.failures[0].file} ({seen.failures[0].reason})"
            raise InvalidInput(
                f"None of the {len(tags_of):,} photographs can be read any more; the first was "
                f"{first}. If they have moved: tagkin scan FOLDER"
            )
        step("Laying out visual feature space", 0, 1)
        layouts = {"In visual feature space": lay_out(seen.features, _SEED)}
        step("Laying out the semantic space", 0, 1)
        embeddings = annotator.space_.transform(seen.features)
        layouts["In the semantic space"] = lay_out(embeddings, _SEED)
        step("Drawing", 0, 1)
        rows = annotator.vocabulary_.respell([tags_of[file] for file in seen.files])
        draw_map(layouts, seen.files, rows, output)
    report_problems(seen.failures, verbose)
    say(f"{count(len(seen.files), 'photograph')} drawn: {shown(output)}")
