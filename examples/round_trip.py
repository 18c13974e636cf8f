"""The rest of the way: accept suggestions, write them beside the photographs, undo it all.

Part of ``make demo``.
"""

import hashlib
from pathlib import Path

from tagkin.catalogue import ACCEPTED, Catalogue, Filters
from tagkin.errors import TagkinError
from tagkin.progress import Progress

__all__ = ["round_trip"]

SURE = 0.9  # the confidence from which suggestions are accepted


def digests(folder: Path) -> dict[str, str]:
    """Every file of a folder, and what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def round_trip(catalogue: Catalogue, step: Progress) -> None:
    """Accept by threshold, write sidecars, show one, undo all of it, and compare every byte.

    Parameters
    ----------
    catalogue : Catalogue
        With suggestions; its folder is written to.
    step : Progress
        Called with what is done, and how far it is.
    """
    root = Path(catalogue.root)
    print(f"\nThe rest of the way, in {root}:\n")
    accepted = catalogue.decisions.decide(ACCEPTED, Filters(at_least=SURE))
    print(f"  Accepted   {len(accepted):,} tags with a confidence of {SURE:.0%} and more.")
    before = digests(root)
    written = catalogue.write(progress=step)
    print(f"  Written    {written.n_tags:,} tags into {written.n_written:,} sidecars.")
    if written.files:
        show_one(catalogue, written.files[0].photograph, written.files[0].file)
        catalogue.undo(progress=step)
    after = digests(root)
    if after != before:
        raise TagkinError(f"{len(after.items() ^ before.items())} files differ after the undo.")
    catalogue.undo(progress=step)
    print(f"  Undone     All {len(before):,} files are as they were, byte for byte.")


def show_one(catalogue: Catalogue, photograph: str, sidecar: str) -> None:
    """Print where the tags of one sidecar come from."""
    print(f"             {Path(sidecar).name}, for example:")
    for tag in catalogue.explain(photograph).tags:
        if tag.state in ("accepted", "found"):
            print(f"               {tag.tag}: {'; '.join(said.text for said in tag.said)}")
