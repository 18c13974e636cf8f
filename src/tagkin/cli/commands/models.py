"""tagkin models: other networks by name; `get` downloads them, `list` stays on the machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.guard import INTERRUPTED
from tagkin.cli.output import data, progress_bar, relative, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import plain_table, size
from tagkin.errors import InvalidInput

if TYPE_CHECKING:
    from tagkin.features.model_registry import ModelEntry


@command("models list")
def list_(as_json: options.AsJson = False) -> None:
    """List the models that can be installed, and which of them are.

    Use an installed model by its name: tagkin train --backbone NAME. --json writes a line for each
    model, with its source, licence, files and folder. To remove a model, delete its folder.

    Examples
    --------
    tagkin models list
    tagkin models list --json
    """
    from dataclasses import asdict

    from tagkin.features.model_registry import registered_models

    entries = registered_models().values()
    if as_json:
        for entry in entries:
            known = {"installed": not entry.missing_files(), "folder": str(entry.folder)}
            send_json(asdict(entry) | known)
        return
    table = plain_table("Model", "Size", "Licence", "Installed", "For")
    for entry in entries:
        state = "yes" if not entry.missing_files() else "partly" if entry.folder.exists() else ""
        advice = " (recommended)" if entry.recommended else ""
        purpose = f"{entry.purpose}{advice}"
        table.add_row(entry.name, size(entry.n_bytes), entry.licence, state, purpose)
    data().print(table)


@command("models get")
def get(
    name: Annotated[str, options.argument("NAME")],
    accept_licence: Annotated[
        bool,
        typer.Option(
            "--accept-licence", help="Accept a licence that is not open, without a question."
        ),
    ] = False,
    dry_run: options.DryRun = False,
) -> None:
    """Download and install a model. No other command downloads anything.

    NAME is a model of tagkin models list. It comes from huggingface.co, or from the mirror in
    $HF_ENDPOINT. tagkin sends the names of the model's files, and nothing of yours. It compares
    every file with the SHA-256 that it knows, even if the model is installed already, and gets only
    files that are missing or changed.

    Models are in $TAGKIN_MODELS or, if that is not set, in your user data folder.

    Examples
    --------
    tagkin models get siglip2-base
    tagkin models get dinov3-small --accept-licence --dry-run
    """
    from tagkin.features.model_registry import find_entry

    entry = find_entry(name)
    folder, missing = relative(entry.folder), entry.missing_files()
    if dry_run:
        n_bytes = sum(entry.files[file].bytes for file in missing)
        licence = f"{entry.licence}, {entry.terms}" if entry.terms else entry.licence
        say(f"{size(n_bytes)} would be downloaded from {entry.source} into {folder}.")
        say(f"Licence: {licence}, see {entry.licence_url}")
        return
    if missing:
        _accept(entry, accept_licence)
    from tagkin.features.model_downloads import download_model

    try:
        with progress_bar() as step:
            download_model(entry, step)
    except KeyboardInterrupt:
        say(("Interrupted.", "yellow"), " The same command continues the download.")
        raise typer.Exit(INTERRUPTED) from None
    say(f"{name} is installed in {folder}: {size(entry.n_bytes)}, all files as expected.")
    say(f"To learn with it: tagkin train --backbone {name}")


def _accept(entry: ModelEntry, accepted: bool) -> None:
    """Ask before a download under a licence that is not open."""
    if not entry.terms or accepted:
        return
    say(f"The licence of {entry.name} is not open: {entry.licence}, {entry.terms}.")
    say(f"Read it: {entry.licence_url}")
    if not sys.stdin.isatty():
        raise InvalidInput("Pass --accept-licence if you accept it. Nothing was downloaded.")
    typer.confirm("Do you accept it?", abort=True, err=True)
