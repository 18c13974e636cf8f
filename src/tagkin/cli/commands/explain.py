"""tagkin explain: where the tags of a photograph come from."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from tagkin.cli import options
from tagkin.cli.catalogues import (
    check_not_folder,
    day,
    find_paths,
    first_photograph,
    open_for_command,
)
from tagkin.cli.output import data, relative, send_json
from tagkin.cli.registry import command
from tagkin.cli.tables import kin_text
from tagkin.wording import is_by_name, near_text, percent, shares_text

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue, Explained

_N_KIN = 6  # per tag
_STATES = {
    "found": "in your files",
    "accepted": "accepted",
    "suggested": "suggested",
    "rejected": "rejected",
}


@command("explain")
def explain(
    photo: options.Photo,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Show where each tag of a photograph comes from.

    PHOTO is a photograph of a collection. A tag is in a file, or a run suggested it with a
    confidence, and you may have accepted or rejected it. A suggestion comes from the photograph
    itself, from its kin, the most similar tagged photographs with the tag, from photographs of
    about the same time or place or in the same folder, and from the meaning of the tag's name, each
    with its share of the score. Kin with less than 2 % of it are left out.

    The first line says when, where and with what the photograph was taken.

    Examples
    --------
    tagkin explain ~/Pictures/photo.jpg
    tagkin explain ~/Pictures/photo.jpg --json
    """
    with open_for_command(catalogue, near=first_photograph([photo])) as opened:
        (path,) = find_paths(opened, [photo])
        check_not_folder(opened, path)
        explained = opened.explain(path)
        if as_json:
            send_json(_document(opened, explained))
        else:
            _show(opened, explained)


def _document(catalogue: Catalogue, explained: Explained) -> dict[str, object]:
    def locate(path: str | None) -> str | None:
        return path and relative(catalogue.absolute(path))

    tags = [
        _without_none(
            {
                "tag": tag.tag,
                "state": tag.state,
                "confidence": tag.confidence,
                "said": [_without_none(asdict(s) | {"file": locate(s.file)}) for s in tag.said],
                "kin": [{"file": locate(k.path), "share": k.share} for k in tag.kin[:_N_KIN]],
                **{f"{name}_share": share for name, share in tag.shares.items()},
                "n_near_with": tag.n_near_with if explained.n_near else None,
            }
        )
        for tag in explained.tags
    ]
    finished = explained.finished and _without_none(asdict(explained.finished))
    return _without_none(
        {
            "file": locate(explained.path),
            "digest": explained.digest,
            "facts": explained.facts,
            "tags": tags,
            "n_near": explained.n_near,
            "finished": finished,
        }
    )


def _without_none(plain: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in plain.items() if value is not None}


def _show(catalogue: Catalogue, explained: Explained) -> None:
    from rich.padding import Padding

    from tagkin.collection.facts import describe_facts

    console = data()
    console.print(relative(catalogue.absolute(explained.path)), style="bold")
    if facts := describe_facts(explained.facts):
        console.print(" · ".join(text for _, text in facts), style="dim")
    if not explained.tags:
        console.print("It has no tag in files, and no suggestion.")
    if (finished := explained.finished) is not None:
        console.print(
            console.text(f"{finished.text}: no other tags  ", (day(finished.when), "dim"))
        )
    for tag in explained.tags:
        console.print()
        confidence = "" if tag.confidence is None else f", {percent(tag.confidence)} confidence"
        by_name = is_by_name(tag.shares)
        by = " by its name" if tag.state == "suggested" and by_name else ""
        console.print(console.text((tag.tag, "cyan"), f"  {_STATES[tag.state]}{by}{confidence}"))
        if shares := shares_text(tag.shares):
            console.print(f"  suggested {shares}", style="dim")
        if near := near_text(tag.n_near_with, explained.n_near):
            console.print(f"  {near}", style="dim")
        for source in tag.said:
            when = f"  {day(source.when)}" if source.when else ""
            console.print(console.text(f"  {source.text}", (when, "dim")))
        present = [(kin.path, kin.share) for kin in tag.kin[:_N_KIN] if kin.path is not None]
        if kin := kin_text((catalogue.absolute(path), share) for path, share in present):
            console.print(Padding(console.text((f"kin: {kin}", "dim")), (0, 0, 0, 2)))
