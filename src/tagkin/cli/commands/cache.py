"""tagkin cache: show or empty the feature cache."""

from __future__ import annotations

from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.output import data, relative, say, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import facts, size


@command("cache")
def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Empty it, and remove damaged caches.")
    ] = False,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Show or empty the feature cache.

    The cache keeps the features of each photograph, and vectors of tag names, so they are computed
    only once. It is the folder $TAGKIN_CACHE or, if that is not set, tagkin in your user cache
    folder. Above 10 GB, it removes the oldest features.

    Examples
    --------
    tagkin cache
    tagkin cache --clear
    """
    from tagkin.features import FeatureCache, default_cache_folder

    with FeatureCache(default_cache_folder()) as opened:
        if clear and not dry_run:
            opened.clear()
        content = opened.info()
    folder = relative(content.folder)
    if as_json:
        counts = {"n_entries": content.n_entries, "n_bytes": content.n_bytes}
        send_json({"folder": folder, "dry_run": dry_run, **counts})
    elif clear and not dry_run:
        say(f"The cache in {folder} is empty.")
    else:
        rows = [("Cache", folder), ("Size", size(content.n_bytes))]
        data().print(facts([*rows, ("Entries", f"{content.n_entries:,}")]))
