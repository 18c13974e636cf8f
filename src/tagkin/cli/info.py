"""tagkin info: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import opened
from tagkin.cli.output import data, json_line, relative, send, shown, shown_tag, shown_text
from tagkin.cli.sources import open_model
from tagkin.cli.tables import facts, size
from tagkin.errors import StorageError
from tagkin.storage import read_summary
from tagkin.wording import denoising_text

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin info my-tags
  tagkin info my-tags --json
  tagkin info
"""
_TAGS = 12  # named


def run(
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", show_default=False, hidden=True)
    ] = None,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Show what a model learned from, and how.

    MODEL is the model's folder; without it, the model is that of a catalogue.
    """
    if model is None:
        with opened(catalogue) as one:
            model = one.model.folder()
    found = _facts(model)
    if as_json:
        send(json_line(found))
        return
    often = sorted(found["tags"].items(), key=lambda item: -item[1])
    named = ", ".join(f"{shown_tag(tag)} ({n:,})" for tag, n in often[:_TAGS])
    in_series = f", {found['in_series']:,} of them in {found['series']:,} series"
    if not found["series"]:
        in_series = ""
    rows = [
        ("Model", f"{shown(model)} ({_size_text(found)})"),
        ("Photographs", f"{found['photographs']:,}{in_series}"),
        ("Tags", f"{len(often):,}: {named}{', …' if len(often) > _TAGS else ''}"),
        ("Backbone", f"{shown(found['backbone'])} ({found['fingerprint'][:12]})"),
        ("Denoised", denoising_text(found["denoised"])),
    ]
    console = data()
    console.print(facts(rows))
    console.print()
    for line in found["description"]:
        console.print(shown_text(line), style="dim")


def _facts(folder: Path) -> dict[str, Any]:
    """What a model says of itself; those of earlier versions have to be opened for it."""
    summary = read_summary(folder)
    if summary is None:
        summary = open_model(folder).summary()
    elif not _is_usable(summary):
        raise StorageError(
            f"{relative(folder)} is damaged: what it says of itself is not what a model says. "
            "Restore it from a copy, or train again."
        )
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    apart = sum(n for name, n in sizes.items() if name.startswith("apart-"))
    return {
        "model": relative(folder),
        "bytes": sum(sizes.values()),
        "bytes_apart": apart,
        **{name: summary[name] for name in _SAID},
    }


# What a model says of itself, and as what.
_SAID: dict[str, type] = {
    "photographs": int,
    "in_series": int,
    "series": int,
    "tags": dict,
    "dropped": dict,
    "backbone": str,
    "fingerprint": str,
    "denoised": float,
    "description": list,
}


def _is_usable(summary: dict[str, Any]) -> bool:
    """Whether a summary has all that is shown of it, as it is shown."""
    if any(type(summary.get(name)) is not kind for name, kind in _SAID.items()):
        return False
    counts = [*summary["tags"].values(), *summary["dropped"].values()]
    texts = all(isinstance(line, str) for line in summary["description"])
    return texts and all(type(n) is int and 0 <= n < 2**53 for n in counts)


def _size_text(found: dict[str, Any]) -> str:
    """How large a model is, and how much of it is not read before it is needed."""
    text = size(found["bytes"])
    if not found["bytes_apart"]:
        return text
    return f"{text}, {size(found['bytes_apart'])} of it read by audits and further learning alone"
