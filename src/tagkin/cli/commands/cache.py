"""tagkin cache: show, shrink and empty the feature cache."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.output import data, json_line, relative, say, send, shown
from tagkin.cli.registry import Panel, command, group
from tagkin.cli.streams import escape
from tagkin.cli.tables import facts, size
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.features.cache import FeatureCache, Pruned

group("cache", "Show, shrink or empty the feature cache.", Panel.KEEP, 4)

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _parse_size(text: str) -> int:
    """Return the number of bytes in a size such as 500MB or 1.5 GB."""
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?B?)", text.strip(), flags=re.IGNORECASE)
    if parts is None or parts[2].upper() not in _UNITS:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 500MB or 2GB.")
    return round(float(parts[1]) * _UNITS[parts[2].upper()])


@command("cache info", Panel.KEEP, 1)
def info(as_json: options.AsJson = False) -> None:
    """Show what the cache holds, and how large it is.

    The cache keeps the features of each photograph, and vectors of tag names, so they are computed
    only once. It is the folder $TAGKIN_CACHE or, if that is not set, tagkin in your user cache
    folder.

    Examples
    --------
    tagkin cache info
    tagkin cache info --json
    """
    with _open_cache() as cache:
        content = cache.info()
    if as_json:
        send(json_line(asdict(content) | {"folder": relative(content.folder)}))
        return
    limit = "no limit" if content.max_bytes is None else f"of at most {size(content.max_bytes)}"
    rows = [
        ("Cache", shown(content.folder)),
        ("Size", f"{size(content.n_bytes)} {limit}"),
        ("Entries", f"{content.n_entries:,}"),
    ]
    for use in content.backbones:
        what = f"{count(use.n_entries, 'entry', 'entries')}, {size(use.n_bytes)}"
        rows.append((escape(use.name), f"{what} ({use.fingerprint[:12]})"))
    data().print(facts(rows))


@command("cache prune", Panel.KEEP, 2, writes=True)
def prune(
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            parser=_parse_size,
            help="The largest size, such as 500MB or 2GB. Default: the cache's own limit, 10GB.",
        ),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Shrink the cache by removing the least recently used features.

    They are computed again when they are needed.

    Examples
    --------
    tagkin cache prune --max-size 500MB
    tagkin cache prune --max-size 2GB --dry-run
    """
    cache = _open_cache()
    _report(cache, cache.prune(max_size, dry_run=dry_run), dry_run, as_json)


@command("cache clear", Panel.KEEP, 3, writes=True)
def clear(dry_run: options.DryRun = False, as_json: options.AsJson = False) -> None:
    """Empty the cache, and remove files of older or damaged caches.

    Features are computed again when they are needed.

    Examples
    --------
    tagkin cache clear
    tagkin cache clear --dry-run
    """
    cache = _open_cache()
    _report(cache, cache.clear(dry_run=dry_run), dry_run, as_json)


def _open_cache() -> FeatureCache:
    from tagkin.features import FeatureCache, default_cache_folder

    return FeatureCache(default_cache_folder())


def _report(cache: FeatureCache, pruned: Pruned, dry_run: bool, as_json: bool) -> None:
    cache.close()
    if as_json:
        send(json_line({"folder": relative(cache.folder), "dry_run": dry_run} | asdict(pruned)))
        return
    verb = "would be" if dry_run else "was" if pruned.n_entries == 1 else "were"
    entries = count(pruned.n_entries, "entry", "entries")
    say(f"{entries} {verb} removed from {shown(cache.folder)}: {size(pruned.n_bytes)}")
