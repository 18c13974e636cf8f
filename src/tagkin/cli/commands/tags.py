"""tagkin tags: list, rename, merge and forget the tags of a collection."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import check_whole, open_for_command
from tagkin.cli.output import csv_text, data, say, send, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import plain_table
from tagkin.wording import count, name_first, percent, quote_tags

if TYPE_CHECKING:
    from tagkin.catalogue import Duplicates, TagCounts, TagsChanged

_COLUMNS = ("Tag", "In files", "Accepted", "Rejected", "Suggested", "Quality")

Tag = Annotated[str, options.argument("TAG")]
Tags = Annotated[list[str], options.argument("TAGS")]


@command("tags list")
def list_(
    folder: options.Folder = None,
    as_json: options.AsJson = False,
    as_csv: options.AsCsv = False,
    catalogue: options.Catalogue = None,
) -> None:
    """List the tags of a collection, with counts and quality.

    FOLDER is the collection; the default is the current folder's. Quality is the average precision
    on photographs that the last training held out. The list points out likely duplicates, such as
    dog and dogs. --json writes a line for each tag.

    Examples
    --------
    tagkin tags list ~/Pictures
    tagkin tags list --json
    """
    with open_for_command(catalogue, near=folder) as opened:
        check_whole(opened, folder)
        tags = opened.tags.list_all()
        pairs = [] if as_json or as_csv else opened.tags.duplicates()
        if as_json:
            for tag in tags:
                send_json(tag.to_dict())
            return
        if as_csv:
            names = ["name", "n_found", "n_accepted", "n_rejected", "n_suggested", "expected"]
            names.append("quality")
            send(csv_text(names, ([getattr(tag, name) for name in names] for tag in tags)))
            return
        _show(tags)
        if pairs:
            named = name_first([f"{pair.keep} and {pair.others[0]}" for pair in pairs])
            say(f"{named} may be duplicates. See: ", ("tagkin tags duplicates", "bold"))


def _show(tags: list[TagCounts]) -> None:
    if not tags:
        say("There are no such tags.")
        return
    table = plain_table(*_COLUMNS, right=_COLUMNS[1:])
    for tag in tags:
        counts = [f"{n:,}" for n in (tag.n_found, tag.n_accepted, tag.n_rejected)]
        suggested = "forgotten" if tag.is_forgotten else f"{tag.n_suggested:,}"
        table.add_row(tag.name, *counts, suggested, percent(tag.quality))
    data().print(table)


@command("tags rename")
def rename(
    tag: Tag,
    name: Annotated[str, options.argument("NAME")],
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Rename a tag.

    TAG is called NAME from now on, in training, suggestions and writing. Files that have it keep
    the old name. A | in NAME nests the tag: "colour|red" is below colour. tagkin undo reverts it.

    Examples
    --------
    tagkin tags rename red scarlet
    tagkin tags rename red "colour|red"
    tagkin tags rename red scarlet --dry-run
    """
    _change("rename", [tag], name, dry_run, as_json, catalogue)


@command("tags merge")
def merge(
    tags: Tags,
    into: Annotated[str, typer.Option("--into", metavar="TAG", help="The tag to merge into.")],
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Merge tags into another tag.

    Training, suggestions and writing use the tag of --into in place of TAGS. Files that have TAGS
    keep them. tagkin undo reverts it.

    Examples
    --------
    tagkin tags merge red green --into colour
    tagkin tags merge red green --into colour --dry-run
    """
    _change("merge", tags, into, dry_run, as_json, catalogue)


@command("tags forget")
def forget(
    tags: Tags,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Forget tags, so they are neither learned nor suggested.

    TAGS stay in files that have them, and decisions on them are kept. tagkin undo reverts it, and
    so does tagkin tags restore.

    Examples
    --------
    tagkin tags forget red
    tagkin tags forget red green --dry-run
    """
    _change("forget", tags, None, dry_run, as_json, catalogue)


@command("tags restore")
def restore(
    tags: Tags,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Restore forgotten tags.

    The next training learns TAGS, and the next tagkin suggest suggests them again. tagkin undo
    --run reverts any edit of tags, such as a merge.

    Examples
    --------
    tagkin tags restore blurred
    """
    _change("restore", tags, None, dry_run, as_json, catalogue)


@command("tags duplicates")
def duplicates(
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Find likely duplicates such as dog and Dog, car and automobile.

    Duplicates differ in spelling, or as singular and plural. Tags that mean the same follow:
    synonyms such as car and automobile, and translations such as Hund and dog. Nothing is merged:
    each line is a command that would merge the tags. --json writes a line for each group.

    Examples
    --------
    tagkin tags duplicates
    tagkin tags duplicates --json
    """
    with open_for_command(catalogue) as opened:
        pairs, synonyms = opened.tags.duplicates(), opened.tags.same_meaning()
    if as_json:
        for pair in (*pairs, *synonyms):
            send_json(vars(pair) | {"others": list(pair.others)})
        return
    _offer_merges(pairs)
    if synonyms:
        say("These tags seem to mean the same:")
        _offer_merges(synonyms)
    if not pairs and not synonyms:
        say("No likely duplicates.")


def _offer_merges(pairs: list[Duplicates]) -> None:
    console = data()
    for pair in pairs:
        merge = ["tagkin", "tags", "merge", *pair.others, "--into", pair.keep]
        console.print(console.text(f"{shlex.join(merge)}  ", (f"# {pair.why}", "dim")))


def _change(
    what: str,
    tags: list[str],
    into: str | None,
    dry_run: bool,
    as_json: bool,
    catalogue: options.Catalogue,
) -> None:
    with open_for_command(catalogue, f"tags {what}", write=True, dry_run=dry_run) as opened:
        changed = opened.tags.change(what, tags, into)
    past = {
        "rename": "renamed to",
        "merge": "merged into",
        "forget": "forgotten",
        "restore": "restored",
    }
    _report(changed, past[what], dry_run, as_json)


def _report(changed: TagsChanged, past: str, dry_run: bool, as_json: bool) -> None:
    if as_json:
        send_json(vars(changed) | {"dry_run": dry_run, "run": None if dry_run else changed.run})
        return
    verb = "would be" if dry_run else "is" if len(changed.tags) == 1 else "are"
    into = f" {quote_tags([changed.into])}" if changed.into else ""
    touched = f"{count(changed.n_found, 'photograph')}, {count(changed.n_decisions, 'decision')}"
    text = f"{quote_tags(changed.tags)} {verb} {past}{into}: {touched}. Files are unchanged."
    say(text)
