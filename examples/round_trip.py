"""The rest of the way: accept suggestions, write them beside the photographs, take it all back.

Part of ``make demo``. It works on a copy of the collection, with the model that was learned before.
"""

import hashlib
import os
import shutil
from pathlib import Path

from tagkin.annotator import Annotator
from tagkin.catalogue import ACCEPTED, Catalogue, Filters, open_for_scan
from tagkin.errors import TagkinError
from tagkin.progress import Progress

__all__ = ["round_trip"]

SURE = 0.8  # the confidence from which suggestions are accepted


def digests(folder: Path) -> dict[str, str]:
    """Every file of a folder, and what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def copied(files: list[str], output: Path, others: list[str]) -> Path:
    """A copy of photographs and of what says their tags, in a folder of its own."""
    copy = output / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    root = Path(os.path.commonpath([os.path.dirname(os.path.abspath(file)) for file in files]))
    for file in [*files, *others]:
        target = copy / Path(os.path.abspath(file)).relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    for end in ("", "-wal", "-shm", "-writer"):
        (output / f"catalogue.sqlite{end}").unlink(missing_ok=True)
    return copy


def round_trip(
    annotator: Annotator, files: list[str], others: list[str], output: Path, step: Progress
) -> None:
    """Accept by threshold, write sidecars into a copy, show one, undo, and compare every byte.

    Parameters
    ----------
    annotator : Annotator
        Fitted to the photographs.
    files, others : lists of str
        The photographs, and the files that hold their tags.
    output : Path
        The folder for the copy and its catalogue.
    """
    copy = copied(files, output, others)
    os.environ.setdefault("TAGKIN_CATALOGUES", str(output / "catalogues"))
    print(f"\nThe rest of the way, on a copy in {copy}:\n")
    with open_for_scan(copy, output / "catalogue.sqlite") as catalogue:
        catalogue.scan(progress=step)
        untagged = catalogue.photographs.with_tags(only_untagged=True)
        found = catalogue.model.suggest(annotator, "demo", {}, contents=untagged, progress=step)
        print(f"  Suggested  {found.n_suggestions:,} tags for {found.n_with:,} photographs.")
        accepted = catalogue.decisions.decide(ACCEPTED, Filters(at_least=SURE))
        print(f"  Accepted   the {len(accepted):,} with a confidence of {SURE:.0%} and more.")
        before = digests(copy)
        written = catalogue.write(progress=step)
        print(f"  Written    {written.n_tags:,} tags into {written.n_written:,} sidecars.")
        if written.files:
            show_one(catalogue, written.files[0].photograph, written.files[0].file)
            catalogue.undo(progress=step)
        after = digests(copy)
    if after != before:
        raise TagkinError(f"{len(after.items() ^ before.items())} files differ after the undo.")
    print(f"  Undone     All {len(before):,} files are as they were, byte for byte.")


def show_one(catalogue: Catalogue, photograph: str, sidecar: str) -> None:
    """Print one sidecar, and who says so."""
    print(f"\n  {sidecar}:\n")
    for line in Path(catalogue.absolute(sidecar)).read_text(encoding="utf-8").splitlines():
        print(f"    {line}")
    print()
    for tag in catalogue.explain(photograph).tags:
        if tag.state in ("accepted", "found"):
            print(f"    {tag.tag}: {'; '.join(said.text for said in tag.said)}")
    print()
