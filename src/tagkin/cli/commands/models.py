"""tagkin models: other networks by name; `get` downloads them, all else stays on the machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.guard import INTERRUPTED
from tagkin.cli.output import data, json_line, name_first, progress_bar, say, send, shown
from tagkin.cli.registry import command
from tagkin.cli.streams import escape
from tagkin.cli.tables import facts, plain_table, size
from tagkin.errors import InvalidInput, NotFound, StorageError
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.features.installed_models import InstalledModel
    from tagkin.features.model_registry import ModelEntry

Name = Annotated[str, options.argument("NAME")]
_SETTINGS = ("preprocessing", "output", "pool", "text", "scale", "bias")


@command("models list")
def list_(as_json: options.AsJson = False) -> None:
    """List the models that can be installed, and those that are.

    Use an installed model by its name: tagkin train --backbone NAME. --json writes a line for each
    model.

    Examples
    --------
    tagkin models list
    tagkin models list --json
    """
    from tagkin.features.installed_models import installed_models, model_folder
    from tagkin.features.model_registry import registered_models

    entries, installed = registered_models(), installed_models()
    names = [*entries, *(name for name in installed if name not in entries)]
    if as_json:
        for name in names:
            send(json_line(_describe(name, entries.get(name))))
        return
    table = plain_table()
    for column in ("Model", "Size", "Licence", "Installed", "For"):
        table.add_column(column, justify="right" if column == "Size" else "left")
    for name in names:
        entry, model = entries.get(name), _read(name)
        n_bytes = entry.n_bytes if entry else _size_of(model)
        licence = entry.licence if entry else model.licence if model else ""
        purpose = entry.purpose if entry else "imported"
        advice = " (recommended)" if entry and entry.recommended else ""
        partly = "partly" if model_folder(name).exists() else ""
        there = "yes" if model else "damaged" if name in installed else partly
        table.add_row(name, size(n_bytes), escape(licence), there, f"{purpose}{advice}")
    data().print(table)


@command("models info")
def info(name: Name, as_json: options.AsJson = False) -> None:
    """Show the source, licence and files of a model.

    NAME is a model of tagkin models list. What is not known is marked so.

    Examples
    --------
    tagkin models info siglip2-base
    tagkin models info dinov3-small --json
    """
    from tagkin.features.model_registry import registered_models

    entry, model = registered_models().get(name), _read(name)
    if entry is None and model is None:
        raise NotFound(f"There is no model {name!r}: tagkin models list")
    facts_of = _describe(name, entry)
    if as_json:
        send(json_line(facts_of))
        return
    known = {key: value for key, value in facts_of.items() if key not in ("files", "settings")}
    rows = [(key.replace("_", " ").capitalize(), _text(value)) for key, value in known.items()]
    for file, record in facts_of["files"].items():
        bytes_text = "size not known" if record["bytes"] is None else size(record["bytes"])
        digest = record["sha256"] or "not known, kept by the first download"
        rows.append((file, f"{bytes_text}, SHA-256 {digest}"))
    settings = facts_of["settings"].items()
    rows += [(key.capitalize(), _text(value)) for key, value in settings if value is not None]
    data().print(facts(rows))


@command("models get", writes=True, connects=True)
def get(
    name: Name,
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
    every file with the SHA-256 that it knows. An interrupted download continues where it ended.

    Models are in $TAGKIN_MODELS or, if that is not set, in your user data folder.

    Examples
    --------
    tagkin models get siglip2-base
    tagkin models get dinov3-small --accept-licence --dry-run
    """
    from tagkin.features.installed_models import model_folder
    from tagkin.features.model_registry import find_entry

    entry = find_entry(name)
    if _read(name) is not None:
        say(f"{name} is installed already. To check its files: tagkin models verify {name}")
        return
    folder = shown(model_folder(name))
    if dry_run:
        licence = f"{entry.licence}, {entry.terms}" if entry.terms else entry.licence
        say(f"{size(entry.n_bytes)} would be downloaded from {escape(entry.source)} into {folder}.")
        say(f"Licence: {escape(licence)}, see {entry.licence_url}")
        return
    _accept(entry, accept_licence)
    from tagkin.features.model_downloads import download_model

    try:
        with progress_bar() as step:
            model = download_model(entry, step)
    except KeyboardInterrupt:
        say("[yellow]Interrupted.[/yellow] The same command continues the download.")
        raise typer.Exit(INTERRUPTED) from None
    say(f"{name} is installed in {folder}: {size(_size_of(model))}.")
    if entry.revision is None:
        say(f"Its revision was not known; from now on it is {model.revision}.")
    for file in entry.unknown_digests:
        say(f"The SHA-256 of {file} was not known; from now on it is {model.files[file].sha256}.")
    say(f"To learn with it: tagkin train --backbone {name}")


def _accept(entry: ModelEntry, accepted: bool) -> None:
    """Ask before a download under a licence that is not open."""
    if not entry.terms or accepted:
        return
    say(f"The licence of {entry.name} is not open: {escape(entry.licence)}, {entry.terms}.")
    say(f"Read it: {entry.licence_url}")
    if not sys.stdin.isatty():
        raise InvalidInput("Pass --accept-licence if you accept it. Nothing was downloaded.")
    typer.confirm("Do you accept it?", abort=True, err=True)


@command("models verify")
def verify(
    name: Annotated[str | None, options.argument("NAME")] = None, as_json: options.AsJson = False
) -> None:
    """Compare the files of installed models with their SHA-256.

    NAME is an installed model. Default: all of them. --json writes a line for each model.

    Examples
    --------
    tagkin models verify
    tagkin models verify my-clip --json
    """
    from tagkin.features.installed_models import (
        damaged_files,
        installed_models,
        read_installed_model,
    )

    names = [name] if name else installed_models()
    damaged = {}
    for each in names:
        try:
            damaged[each] = damaged_files(read_installed_model(each))
        except StorageError as error:
            damaged[each] = [str(error)]
        if as_json:
            send(json_line({"name": each, "damaged": damaged[each]}))
    if broken := {each: files for each, files in damaged.items() if files}:
        text = "; ".join(f"{each}: {name_first(files)}" for each, files in broken.items())
        raise StorageError(
            f"Files have changed since they were installed: {text}. Remove such a model with "
            "`tagkin models remove`, and install it again."
        )
    if not as_json:
        say(f"{count(len(names), 'model is', 'models are')} as installed.")


@command("models import", writes=True)
def import_(
    folder: Annotated[Path, options.argument("FOLDER")],
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Name of the model. Default: from the folder's name."
        ),
    ] = None,
    dry_run: options.DryRun = False,
) -> None:
    """Install a model that is on this machine already.

    FOLDER is a model as Immich keeps it, an ONNX export of open_clip, transformers or
    sentence-transformers, or an .onnx file with a .json file of the same name. The files are
    copied, and the model is opened once to see that it works.

    Examples
    --------
    tagkin models import ViT-B-32__openai
    tagkin models import ViT-B-32__openai --name my-clip
    """
    from tagkin.features.model_imports import import_model, plan_import

    plan = plan_import(folder, name)
    if dry_run:
        files = ", ".join(map(escape, plan.files))
        say(f"{escape(plan.name)} would be installed from {shown(folder)}: {files}.")
        return
    model = import_model(plan)
    say(f"{model.name} is installed in {shown(model.folder)}: {size(_size_of(model))}.")
    say(f"To learn with it: tagkin train --backbone {model.name}")


@command("models remove", writes=True)
def remove(name: Name, dry_run: options.DryRun = False) -> None:
    """Remove an installed model, or what an interrupted download has left.

    NAME is an installed model. Models that were trained with it need it for new photographs.

    Examples
    --------
    tagkin models remove my-clip
    tagkin models remove my-clip --dry-run
    """
    from tagkin.features.installed_models import model_folder, remove_model

    folder = model_folder(name)
    if not dry_run:
        remove_model(name)
    elif not folder.is_dir():
        raise NotFound(f"The model {name!r} is not installed: tagkin models list")
    say(f"{name} {'would be' if dry_run else 'was'} removed from {shown(folder.parent)}.")


# --- what is known of a model --------------------------------------------------------------


def _read(name: str) -> InstalledModel | None:
    """Return an installed model, or None if it is not there or damaged."""
    from tagkin.features.installed_models import read_installed_model

    try:
        return read_installed_model(name)
    except (InvalidInput, StorageError):
        return None


def _describe(name: str, entry: ModelEntry | None) -> dict[str, Any]:
    """Return the facts of the registry, updated with the facts of an installed model."""
    from dataclasses import asdict

    model = _read(name)
    values: dict[str, Any] = {"name": name, "installed": model is not None}
    if entry is not None:
        values |= {key: v for key, v in asdict(entry).items() if key not in ("immich", "terms")}
        values["licence"] = ", ".join(filter(None, (entry.licence, entry.terms)))
    if model is not None:
        known = asdict(model)
        settings = {key: known.pop(key) for key in _SETTINGS}
        known["licence"] = values.get("licence", model.licence)
        values |= known | {"folder": str(model.folder), "settings": settings}
    return values


def _text(value: Any) -> str:
    if isinstance(value, dict):
        known = (f"{key} {_text(item)}" for key, item in value.items() if item is not None)
        return ", ".join(known)
    if isinstance(value, (list, tuple)):
        return " ".join(map(_text, value))
    words = {None: "not known", True: "yes", False: "no"}
    return escape(words[value] if value is None or isinstance(value, bool) else str(value))


def _size_of(model: InstalledModel | None) -> int:
    return sum(record.bytes for record in model.files.values()) if model else 0
