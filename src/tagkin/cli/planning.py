"""tagkin train --dry-run: from what it would learn, and where the model would go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagkin.cli.catalogues import opened
from tagkin.cli.output import data, json_line, relative, say, send, shown
from tagkin.cli.tables import count, facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tagkin.annotator import Annotator
    from tagkin.collection import Collection

__all__ = ["plan_from_catalogue", "plan_from_files"]


def plan_from_files(
    annotator: Annotator, found: Collection, some: Collection, model: Path, as_json: bool
) -> None:
    """Tell what would be learned from photographs of which some carry tags."""
    told = {
        "dry_run": True,
        "model": relative(model),
        "photographs": {"found": len(found), "tagged": len(some)},
        "tags": _tags(annotator, some.tags),
    }
    _tell(annotator, told, as_json)


def plan_from_catalogue(annotator: Annotator, catalogue: Path | None, as_json: bool) -> None:
    """Tell what would be learned from the photographs of a catalogue."""
    with opened(catalogue, "train") as one:
        some, n_all = one.model.to_learn_from()
        told = {
            "run": None,
            "dry_run": True,
            "folder": relative(one.root),
            "catalogue": relative(one.path),
            "model": relative(one.model_folder),
            "photographs": {"found": n_all, "tagged": sum(bool(c.tags) for c in some)},
            "tags": _tags(annotator, [c.tags for c in some if c.tags]),
            "rejected": sum(len(c.rejected) for c in some),
        }
    _tell(annotator, told, as_json)


def _tags(annotator: Annotator, rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    vocabulary = annotator.fit_vocabulary(rows)
    return {"learned": len(vocabulary.names_), "dropped": dict(vocabulary.dropped_)}


def _tell(annotator: Annotator, told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        send(json_line(told))
        return
    photos, tags = told["photographs"], told["tags"]
    few = count(annotator.min_count, "photograph")
    dropped = f", {len(tags['dropped']):,} on fewer than {few} left out" if tags["dropped"] else ""
    rows = [
        ("Photographs", f"{photos['found']:,}, {photos['tagged']:,} of them with tags"),
        ("Tags", f"{tags['learned']:,} to learn{dropped}"),
        ("Model", shown(told["model"])),
    ]
    if "rejected" in told:
        rows.insert(2, ("Rejected", f"{count(told['rejected'], 'tag')} would count against"))
    data().print(facts(rows))
    say("This is what would be learned from. Nothing was written.")
