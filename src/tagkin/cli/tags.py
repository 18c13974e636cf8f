"""tagkin tags: the tags of a collection, and which of them are one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tagkin.cli import options
from tagkin.cli.catalogues import opened
from tagkin.cli.output import csv_text, data, json_line, only_one, say, send, shown_tag, shown_text
from tagkin.cli.tables import count, percent, rule

if TYPE_CHECKING:
    from tagkin.catalogue import Duplicates, TagCounts, TagsChanged

__all__ = ["COMMANDS", "HELP"]

HELP = "List the tags of a collection; rename, merge and forget tags."

_LIST = """\b
Examples:
  tagkin tags list
  tagkin tags list --text beach --json
"""
_RENAME = """\b
Examples:
  tagkin tags rename red scarlet
  tagkin tags rename red scarlet --dry-run
"""
_MERGE = """\b
Examples:
  tagkin tags merge red green --into colour
  tagkin tags merge red green --into colour --dry-run
"""
_FORGET = """\b
Examples:
  tagkin tags forget red
  tagkin tags forget red green --dry-run
"""
_RESTORE = """\b
Examples:
  tagkin tags restore red
"""
_DUPLICATES = """\b
Examples:
  tagkin tags duplicates
  tagkin tags duplicates --json
"""
_NAMED = 3
_COLUMNS = ("Tag", "In files", "Accepted", "Rejected", "Suggested", "Quality")

Tag = Annotated[str, typer.Argument(metavar="TAG", show_default=False, hidden=True)]
Tags = Annotated[list[str], typer.Argument(metavar="TAGS", show_default=False, hidden=True)]


def list_(
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Only tags with this in the name.")
    ] = None,
    forgotten: Annotated[
        bool, typer.Option("--forgotten", help="Only tags that are forgotten.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON Lines on standard output, one tag per line.")
    ] = False,
    as_csv: options.AsCsv = False,
    verbatim: options.Verbatim = False,
    catalogue: options.Catalogue = None,
) -> None:
    """List the tags of a collection, with counts and quality.

    Quality is the average precision on photographs that the last training held out: how well the
    tag is told from others. Tags that may be one, such as dog and dogs, are pointed out.
    """
    only_one(json=as_json, csv=as_csv)
    with opened(catalogue) as one:
        found = one.tags.list_all(text=text, forgotten=forgotten)
        pairs = one.tags.duplicates(text=text, forgotten=forgotten)
    if as_json:
        for tag in found:
            send(json_line(tag.to_dict()))
    elif as_csv:
        send(_csv(found, verbatim))
    else:
        _show(found)
        if pairs:
            named = ", ".join(f"{one.keep} and {one.others[0]}" for one in pairs[:_NAMED])
            more = ", …" if len(pairs) > _NAMED else ""
            said = shown_text(f"{named}{more} may be one tag.")
            say(f"{said} See: [bold]tagkin tags duplicates[/bold]")


def _csv(found: list[TagCounts], verbatim: bool) -> str:
    names = ("name", "n_found", "n_accepted", "n_rejected", "n_suggested", "expected", "quality")
    rows = ([getattr(tag, name) for name in names] for tag in found)
    return csv_text(names, rows, verbatim=verbatim)


def _show(found: list[TagCounts]) -> None:
    if not found:
        say("There are no such tags.")
        return
    table = Table(
        box=rule(), header_style="bold", padding=(0, 1, 0, 0), pad_edge=False, show_edge=False
    )
    for k, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if k else "left", style="" if k else "cyan")
    for tag in found:
        counts = (tag.n_found, tag.n_accepted, tag.n_rejected, tag.n_suggested)
        quality = "–" if tag.quality is None else percent(tag.quality)
        table.add_row(shown_tag(tag.name), *(f"{n:,}" for n in counts), quality)
    data().print(table)


def rename(
    tag: Tag,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, hidden=True)],
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Give a tag another name.

    TAG is called NAME from now on: when it is learned, suggested and written. Files in which it
    stands keep it as it is.
    """
    _change("rename", [tag], name, dry_run, as_json, catalogue)


def merge(
    tags: Tags,
    into: Annotated[
        str, typer.Option("--into", metavar="TAG", help="The tag that they are from now on.")
    ],
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Make several tags one.

    TAGS are another tag from now on: when they are learned, suggested and written. Files in which
    they stand keep them as they are.
    """
    _change("merge", tags, into, dry_run, as_json, catalogue)


def forget(
    tags: Tags,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Forget tags: they are neither learned nor suggested.

    TAGS stay in files in which they stand, and decisions on them are kept; `tagkin tags restore`
    brings them back.
    """
    _change("forget", tags, None, dry_run, as_json, catalogue)


def restore(
    tag: Tag,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Take back that a tag was forgotten, renamed or merged.

    TAG is a tag of its own again. Decisions that were taken meanwhile stay with the tag that it
    was merged into; the next scan tells apart what stands in files.
    """
    with opened(catalogue, "tags restore", write=not dry_run) as one:
        found = one.tags.restore(tag, dry_run=dry_run)
    _report(found, "restore", dry_run, as_json)


def duplicates(
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON Lines on standard output, one group per line.")
    ] = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Find tags that may be one, such as dog, dogs and Dog.

    They differ in spelling, as singular and plural, or by one letter where one of the two is
    rare. Nothing is merged unless you say so: each line is a command that would do it.
    """
    with opened(catalogue) as one:
        found = one.tags.duplicates()
    if as_json:
        for group in found:
            send(json_line(vars(group) | {"others": list(group.others)}))
        return
    for group in found:
        data().print(f"{shown_text(_command(group))}  [dim]# {group.why}[/dim]")
    if not found:
        say("No two tags seem to be one.")


def _command(group: Duplicates) -> str:
    others = " ".join(map(shlex.quote, group.others))
    return f"tagkin tags merge {others} --into {shlex.quote(group.keep)}"


def _change(
    what: str,
    tags: list[str],
    into: str | None,
    dry_run: bool,
    as_json: bool,
    catalogue: options.Catalogue,
) -> None:
    with opened(catalogue, f"tags {what}", write=not dry_run) as one:
        found = one.tags.change(what, tags, into, dry_run=dry_run)
    _report(found, what, dry_run, as_json)


def _report(found: TagsChanged, what: str, dry_run: bool, as_json: bool) -> None:
    if as_json:
        send(json_line(vars(found) | {"dry_run": dry_run}))
        return
    named = ", ".join(shown_tag(tag) for tag in found.tags)
    verb = "would be" if dry_run else "is" if len(found.tags) == 1 else "are"
    past = {"rename": "renamed", "merge": "merged", "forget": "forgotten", "restore": "restored"}
    into = f" to {shown_tag(found.into)}" if what == "rename" and found.into else ""
    into = f" into {shown_tag(found.into)}" if what == "merge" and found.into else into
    touched = f"{count(found.n_found, 'photograph')}, {count(found.n_decisions, 'decision')}"
    say(f"{named} {verb} {past[what]}{into}: {touched}. Files stay as they are.")


COMMANDS = (
    ("list", list_, _LIST),
    ("rename", rename, _RENAME),
    ("merge", merge, _MERGE),
    ("forget", forget, _FORGET),
    ("restore", restore, _RESTORE),
    ("duplicates", duplicates, _DUPLICATES),
)
