"""tagkin cache: what is kept of photographs, how much room it takes, and making room."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.output import data, json_line, relative, say, send, shown, shown_tag
from tagkin.cli.sources import use_cache
from tagkin.cli.tables import facts, size
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.features.cache import FeatureCache, Pruned

__all__ = ["COMMANDS", "HELP"]

HELP = "Show, shrink or empty the feature cache."

_INFO = """\b
Examples:
  tagkin cache info
  tagkin cache info --json
"""
_PRUNE = """\b
Examples:
  tagkin cache prune --max-size 2GB --dry-run
  tagkin cache prune --max-size 500MB
"""
_CLEAR = """\b
Examples:
  tagkin cache clear --dry-run
  tagkin cache clear --cache old-cache
"""
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _bytes(text: str) -> int:
    """The number of bytes that a size such as 500MB or 1.5 GB is."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?B?)", text.strip(), flags=re.IGNORECASE)
    if found is None or found[2].upper() not in _UNITS:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 500MB or 2GB.")
    return round(float(found[1]) * _UNITS[found[2].upper()])


DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Remove nothing; show what would be removed.")
]


def info(cache: options.Cache = None, as_json: options.AsJson = False) -> None:
    """Show what the cache holds, and how large it is."""
    with _opened(cache) as opened:
        found = opened.info()
    if as_json:
        send(json_line(asdict(found) | {"folder": relative(found.folder)}))
        return
    limit = "no limit" if found.max_bytes is None else f"of at most {size(found.max_bytes)}"
    rows = [
        ("Cache", shown(found.folder)),
        ("Size", f"{size(found.n_bytes)} {limit}"),
        ("Features", f"{found.n_entries:,}"),
    ]
    for use in found.backbones:
        what = f"{count(use.n_entries, 'photograph')}, {size(use.n_bytes)} of features"
        rows.append((shown_tag(use.name), f"{what} ({use.fingerprint[:12]})"))
    data().print(facts(rows))


def prune(
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            parser=_bytes,
            help="The largest size, such as 500MB or 2GB. Default: the cache's own limit, 10GB.",
        ),
    ] = None,
    dry_run: DryRun = False,
    cache: options.Cache = None,
    as_json: options.AsJson = False,
) -> None:
    """Shrink the cache: the least recently used features are removed.

    They are computed again when they are needed.
    """
    opened = _opened(cache)
    _report(opened, opened.prune(max_size, dry_run=dry_run), dry_run, as_json)


def clear(
    dry_run: DryRun = False, cache: options.Cache = None, as_json: options.AsJson = False
) -> None:
    """Empty the cache, and remove what older or damaged caches have left.

    Features are computed again when they are needed.
    """
    opened = _opened(cache)
    _report(opened, opened.clear(dry_run=dry_run), dry_run, as_json)


COMMANDS = (("info", info, _INFO), ("prune", prune, _PRUNE), ("clear", clear, _CLEAR))


def _opened(folder: Path | None) -> FeatureCache:
    use_cache(folder, no_cache=False)
    from tagkin.features import FeatureCache, default_cache_folder

    return FeatureCache(default_cache_folder())


def _report(cache: FeatureCache, pruned: Pruned, dry_run: bool, as_json: bool) -> None:
    cache.close()
    if as_json:
        send(json_line({"folder": relative(cache.folder), "dry_run": dry_run} | asdict(pruned)))
        return
    verb = "would be" if dry_run else "was" if pruned.n_entries == 1 else "were"
    features = count(pruned.n_entries, "photograph")
    say(f"Features of {features} {verb} removed from {shown(cache.folder)}: {size(pruned.n_bytes)}")
