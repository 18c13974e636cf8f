"""tagkin train: learn from the tags in a collection."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tagkin.cli import options
from tagkin.cli.catalogues import check_whole, open_collection
from tagkin.cli.output import data, note, progress_bar, relative, report_problems, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import facts
from tagkin.features.backbone_names import BACKBONES
from tagkin.wording import count, name_first

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

_DROPPED = 5  # tags that are named
SPREADS = ((12, 56, 93), (35, 66, 97), (75, 70, 99), (300, 79, 98))
"""Tagged photographs at most, and the range of the precision of single draws where 80 % was asked:
those of 8, 20, 50, and 100 or 200 photographs in docs/results/trust-draws.csv."""


@command("train")
def train(
    folder: options.Folder = None,
    backbone: options.Backbone = BACKBONES[0],
    min_count: options.MinCount = 1,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Learn from the tags in a collection.

    FOLDER is the collection; it is scanned first if it has no catalogue. The default is the
    current folder's collection. Training uses the tags that the last scan found, and your answers:
    accepted tags are right, rejected tags are wrong, and what you did not answer is unknown unless
    you finished the photograph. The model is stored beside the catalogue; your photographs are
    only read.

    A larger network may see more: that of an Immich server (see tagkin connect), or a file.

    Examples
    --------
    tagkin train ~/Pictures
    tagkin train --dry-run
    tagkin train --backbone efficientnet-lite0
    """
    from tagkin.annotator import Annotator

    start = time.perf_counter()
    annotator = Annotator(backbone=options.backbone_name(backbone), min_count=min_count)
    run = None
    with (
        progress_bar() as step,
        open_collection(
            folder, catalogue, "train", step, write=not dry_run, dry_run=dry_run
        ) as opened,
    ):
        check_whole(opened, folder)
        contents, n_found = opened.model.to_learn_from()
        where = {
            "folder": relative(opened.root),
            "catalogue": relative(opened.path),
            "model": relative(opened.model.folder),
        }
        if dry_run:
            from tagkin.annotator.problem import check_enough

            tags = [content.known_tags for content in contents if content.known_tags]
            vocabulary, n_used = annotator.new_vocabulary(), len(tags)
            check_enough(vocabulary.fit_transform(tags), are_tags=True)
        else:
            run = opened.model.train(annotator, progress=step)
            n_found = opened.photographs.count().n_photographs
            vocabulary, n_used = annotator.vocabulary_, sum(map(bool, annotator.tags_))
        n_others = len(opened.model.others_than(contents))
    n_rejected = sum(len(content.rejected) for content in contents)
    photographs: dict[str, object] = {"found": n_found, "tagged" if dry_run else "used": n_used}
    counted = opened.model.choose_complete(contents)
    photographs["complete"] = n_complete = sum(content.is_complete for content in counted)
    if n_others:
        note(_BY_EXAMPLE.format(count(n_others, "photograph")))
    else:
        _note_others(n_complete, len(counted) - n_complete)
    if not dry_run:
        photographs["unreadable"] = report_problems(annotator.failures_)
    needed = time.perf_counter() - start
    if as_json:
        learned = {"learned": len(vocabulary.names_), "dropped": dict(vocabulary.dropped_)}
        summary = {"run": run, "dry_run": dry_run, **where, "photographs": photographs}
        summary |= {"tags": learned, "rejected": n_rejected}
        send_json(summary if dry_run else summary | {"seconds": needed})
        return
    console = data()
    learned_text = f"{len(vocabulary.names_):,} {'to learn' if dry_run else 'learned'}"
    if dropped := list(vocabulary.dropped_):
        few = count(min_count, "photograph")
        named = name_first(dropped, _DROPPED)
        learned_text += f", {len(dropped):,} on fewer than {few} ignored: {named}"
    used_text = f"{n_found:,}, {n_used:,} of them with tags"
    rejected = "Rejected", f"{count(n_rejected, 'tag')} as negative examples"
    if dry_run:
        rows = [("Photographs", used_text), ("Tags", learned_text), rejected]
        console.print(facts([*rows, ("Model", where["model"])]))
        say("Dry run; nothing was written.")
        return
    done = f"{count(len(vocabulary.names_), 'tag')} from {count(n_used, 'photograph')}"
    console.print(f"Learned {done} in {needed:.0f} s (run {run}).", style="green")
    console.print()
    rows = [("Folder", where["folder"]), ("Photographs", f"{used_text} to learn from")]
    rows += [("Tags", learned_text), ("Names", _names_text(annotator))]
    rows += [] if n_others else _confidence_facts(len(counted))
    console.print(facts([*rows, rejected]))
    console.print()
    console.print(console.text("Next: ", ("tagkin suggest", "bold")))


_BY_EXAMPLE = (
    "Only a few examples of each tag are known, so {} without a tag stand for the rest, and "
    "percentages start from what other collections taught. Answers to suggestions make them yours."
)


def _note_others(n_complete: int, n_others: int) -> None:
    """Say which photographs count as complete because few are."""
    from tagkin.annotator.problem import SIZES

    if n_others:
        photographs = count(n_complete, "photograph has", "photographs have")
        others = count(n_others, "other photograph counts", "other photographs count")
        note(
            f"{photographs} complete tags, and training needs {SIZES.few_complete}. Until then, "
            f"{others} as complete: a tag that is missing there counts as wrong. `tagkin finish` "
            "says that a photograph has all its tags."
        )


def _confidence_facts(n_complete: int) -> list[tuple[str, str]]:
    """Say how far percentages can be trusted if they were learned from few photographs."""
    for n_most, low, high in SPREADS:
        if n_complete <= n_most:
            learned = count(n_complete, "complete photograph")
            right = f"of suggestions at 80 %, {low} to {high} % may be right"
            return [("Confidence", f"{right}; learned from {learned}")]
    return []


def _names_text(annotator: Annotator) -> str:
    from tagkin.annotator.naming import count_known_names

    names = annotator.model_.names
    if names is not None:
        return f"used for {count(count_known_names(names), 'tag')}"
    reason = annotator.names_note_ or "No names were used."
    return f"not used: {reason[0].lower() + reason[1:]}"
