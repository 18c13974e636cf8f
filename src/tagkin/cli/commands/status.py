"""tagkin status: the state of a collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from tagkin.cli import options
from tagkin.cli.catalogues import day, next_command, open_for_command
from tagkin.cli.output import data, relative, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import facts, photographs_fact, size
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.catalogue import Status


@command("status")
def status(
    folder: options.Folder = None,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Show what is tagged, suggested, decided and still to do.

    FOLDER is the collection; the default is the current folder's.

    Examples
    --------
    tagkin status
    tagkin status ~/Pictures --json
    """
    with open_for_command(catalogue, near=folder) as opened:
        state, model = opened.status(), relative(opened.model.folder)
        if as_json:
            plain = asdict(state) | {"model_folder": model if state.model else None}
            send_json(plain | {name: relative(plain[name]) for name in ("root", "catalogue")})
            return
        console = data()
        console.print(facts(_rows(state, model)))
        console.print()
        console.print(console.text("Next: ", (next_command(state), "bold")))


def _rows(state: Status, model: str) -> list[tuple[str, str]]:
    photographs = photographs_fact(state.n_photographs, state.n_files, state.n_untagged)
    if state.n_problems:
        photographs += f", {state.n_problems:,} with something that could not be read"
    rows = [
        ("Folder", relative(state.root)),
        ("Photographs", photographs),
        ("Tags", f"{state.n_tags:,}"),
        ("Model", f"{model} ({state.model[:12]})" if state.model else "none yet"),
        (
            "Suggestions",
            f"{state.n_suggestions:,} to decide on, for {count(state.n_to_review, 'photograph')}; "
            f"about {state.expected:,.0f} are right"
            if state.n_suggestions
            else "none to decide on",
        ),
        ("Decisions", f"{state.n_accepted:,} accepted, {state.n_rejected:,} rejected"),
        ("To write", f"tags for {count(state.n_to_write, 'file')}"),
        ("Catalogue", f"{relative(state.catalogue)} ({size(state.n_bytes)})"),
    ]
    rejected = [
        f"from {count(n, kind)} (tagkin write --remove{option} --dry-run)"
        for n, kind, option in (
            (state.n_to_remove, "sidecar", ""),
            (state.n_to_remove_embedded, "photograph", " --embed"),
        )
        if n
    ]
    if rejected:
        rows.insert(7, ("To remove", f"rejected tags {', '.join(rejected)}"))
    if state.n_finished:
        rows.insert(6, ("Finished", count(state.n_finished, "photograph")))
    if state.incomplete_folders:
        folders = [folder or "the whole collection" for folder in state.incomplete_folders]
        rows.insert(3, ("Incomplete", f"tags in {', '.join(folders)}"))
    if state.last_scan is not None:
        rows.insert(1, ("Last scan", day(state.last_scan.started_at)))
    if n := len(state.to_confirm):
        rows.append(("To confirm", f"decisions on {count(n, 'photograph')} that changed"))
    if state.n_unfinished:
        rows.append(("Unfinished", f"{state.n_unfinished:,} writes of a run that was stopped"))
    return rows
