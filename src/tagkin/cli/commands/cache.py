"""tagkin cache: show, shrink or empty the feature cache."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.output import data, relative, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import facts, size
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.features.cache import CacheInfo, FeatureCache, Pruned

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _parse_size(text: str) -> int:
    """Return the number of bytes in a size such as 500MB or 1.5 GB."""
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?B?)", text.strip(), flags=re.IGNORECASE)
    if parts is None or parts[2].upper() not in _UNITS:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 500MB or 2GB.")
    return round(float(parts[1]) * _UNITS[parts[2].upper()])


@command("cache")
def cache(
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            parser=_parse_size,
            help="Shrink it to this size, such as 500MB or 2GB; 0 empties it.",
        ),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the feature cache, or shrink it.

    The cache keeps the features of each photograph, and vectors of tag names, so they are computed
    only once. It is the folder $TAGKIN_CACHE or, if that is not set, tagkin in your user cache
    folder. Above 10 GB, it removes what was not used for longest.

    --max-size removes the least recently used features now; they are computed again when they are
    needed. --max-size 0 also removes files of older or damaged caches.

    Examples
    --------
    tagkin cache
    tagkin cache --max-size 500MB --dry-run
    tagkin cache --max-size 0
    """
    opened = _open_cache()
    if max_size is None:
        with opened:
            _show(opened.info(), as_json)
    elif max_size:
        _report(opened, opened.prune(max_size, dry_run=dry_run), dry_run, as_json)
    else:
        _report(opened, opened.clear(dry_run=dry_run), dry_run, as_json)


def _show(content: CacheInfo, as_json: bool) -> None:
    if as_json:
        send_json(asdict(content) | {"folder": relative(content.folder)})
        return
    limit = "no limit" if content.max_bytes is None else f"of at most {size(content.max_bytes)}"
    rows = [
        ("Cache", relative(content.folder)),
        ("Size", f"{size(content.n_bytes)} {limit}"),
        ("Entries", f"{content.n_entries:,}"),
    ]
    for use in content.backbones:
        what = f"{count(use.n_entries, 'entry', 'entries')}, {size(use.n_bytes)}"
        rows.append((use.name, f"{what} ({use.fingerprint[:12]})"))
    data().print(facts(rows))


def _open_cache() -> FeatureCache:
    from tagkin.features import FeatureCache, default_cache_folder

    return FeatureCache(default_cache_folder())


def _report(cache: FeatureCache, pruned: Pruned, dry_run: bool, as_json: bool) -> None:
    cache.close()
    if as_json:
        send_json({"folder": relative(cache.folder), "dry_run": dry_run} | asdict(pruned))
        return
    verb = "would be" if dry_run else "was" if pruned.n_entries == 1 else "were"
    entries = count(pruned.n_entries, "entry", "entries")
    say(f"{entries} {verb} removed from {relative(cache.folder)}: {size(pruned.n_bytes)}")
