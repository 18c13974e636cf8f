"""Reports on training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tagkin.cli.output import data, json_line, note, say, send, shown
from tagkin.cli.streams import escape
from tagkin.cli.tables import facts, seconds
from tagkin.wording import count, name_first

if TYPE_CHECKING:
    from tagkin.annotator import Annotator
    from tagkin.catalogue import Catalogue, TaggedContent

_TIMED = 16  # photographs whose time is measured
_DROPPED, _PAIRS = 5, 3  # tags and pairs of tags that are named
# Tagged photographs at most, and the range of the precision of single collections where 80 % was
# asked, from docs/results/trust.md
_SPREADS = ((12, 55, 99), (35, 71, 99), (75, 79, 95), (300, 77, 92))


def note_change(catalogue: Catalogue, backbone: str) -> bool:
    """Say what it costs to change the backbone of a model; return whether it changes."""
    if not catalogue.model.exists:
        return False
    old = catalogue.model.load()[0].backbone
    if old == backbone:
        return False
    import time

    import numpy as np

    from tagkin.annotator.photograph_reader import PhotographReader

    reader = PhotographReader(backbone)
    photographs = catalogue.photographs.with_tags()
    digests = [photograph.digest for photograph in photographs]
    with reader.open_cache() as cache:
        out = np.empty((len(digests), reader.backbone.dimension), dtype=np.float16)
        is_cached = np.zeros(len(digests), dtype=bool)
        if cache is not None:
            is_cached = cache.load(reader.backbone, digests, out)
    unread = [p.file for p, known in zip(photographs, is_cached, strict=True) if not known]
    time_text = ""
    if unread:
        sample = unread[:_TIMED]
        reader.cache = False  # a dry run keeps nothing
        reader.read(sample[:1])  # opens the network
        start = time.perf_counter()
        reader.read(sample)
        needed = (time.perf_counter() - start) * len(unread) / len(sample)
        time_text = f", which takes about {seconds(needed)}"
    note(
        f"The backbone changes from {old} to {backbone}. It reads "
        f"{count(len(unread), 'photograph')} that it does not know yet{time_text}. Old features "
        "stay in the cache, and old suggestions until there are new ones."
    )
    return True


def note_plurals(annotator: Annotator) -> None:
    """Name tags that are singular and plural of the same word."""
    if pairs := annotator.vocabulary_.plurals_:
        named = ", ".join(f"{singular} and {plural}" for singular, plural in pairs[:_PAIRS])
        more = f" and {len(pairs) - _PAIRS:,} more pairs" if len(pairs) > _PAIRS else ""
        note(
            f"{named}{more} were learned as separate tags. tagkin tags duplicates shows how to "
            "merge them."
        )


def note_few_complete(contents: Sequence[TaggedContent]) -> int:
    """Return how many photographs have complete tags; say what it means if they are few."""
    from tagkin.annotator.problem import SIZES

    tagged = [content for content in contents if content.known_tags]
    n_complete = sum(content.is_complete for content in tagged)
    if n_complete >= SIZES.few_complete or n_complete == len(tagged):
        return n_complete
    photographs = count(n_complete, "photograph has", "photographs have")
    note(
        f"{photographs} complete tags, and training needs {SIZES.few_complete} to learn from "
        "others. Until then a tag that a tagged photograph does not have counts as wrong. `tagkin "
        "finish` says that a photograph has all its tags."
    )
    return n_complete


def count_learnable(annotator: Annotator, rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Count the tags that a training would learn, and name the tags that it would drop."""
    from tagkin.annotator.problem_input import read_tags

    vocabulary = annotator.new_vocabulary()
    read_tags([list(row) for row in rows], vocabulary)
    return {"learned": len(vocabulary.names_), "dropped": dict(vocabulary.dropped_)}


def report_plan(plan: dict[str, Any], min_count: int, as_json: bool) -> None:
    """Report what a dry run would learn from."""
    if as_json:
        send(json_line(plan))
        return
    photos = plan["photographs"]
    rows = [
        ("Photographs", f"{photos['found']:,}, {photos['tagged']:,} of them with tags"),
        ("Tags", tags_text(plan["tags"], min_count, "to learn")),
        ("Rejected", f"{count(plan['rejected'], 'tag')} as negative examples"),
        ("Model", shown(plan["model"])),
    ]
    data().print(facts(rows))
    say("Dry run; nothing was written.")


def tags_text(tags: dict[str, Any], min_count: int, verb: str = "learned") -> str:
    """Write how many tags were learned, and which were dropped."""
    text = f"{tags['learned']:,} {verb}"
    if dropped := tags["dropped"]:
        few = count(min_count, "photograph")
        named = escape(name_first(list(dropped), _DROPPED))
        text += f", {len(dropped):,} on fewer than {few} ignored: {named}"
    return text


def show_learned(summary: dict[str, Any], rows: Iterable[tuple[str, str]], following: str) -> None:
    """Print how much was learned and in which time, facts about it, and the next command."""
    learned = count(summary["tags"]["learned"], "tag")
    used = count(summary["photographs"]["used"], "photograph")
    time = seconds(summary["seconds"])
    console = data()
    done = f"Learned {learned} from {used} in {time} (run {summary['run']})."
    console.print(f"[green]{done}[/green]\n")
    console.print(facts(rows))
    console.print(f"\nNext: [bold]{following}[/bold]")


def _confidence_facts(n_used: int) -> list[tuple[str, str]]:
    """Say how far percentages can be trusted if few photographs have tags."""
    for n_most, low, high in _SPREADS:
        if n_used <= n_most:
            photographs = count(n_used, "tagged photograph")
            return [("Confidence", f"with {photographs}, 80 % may be {low} to {high} %")]
    return []


def tag_facts(annotator: Annotator, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return facts about the learned tags and their names."""
    from tagkin.annotator.naming import count_known_names

    names = annotator.model_.names
    if names is None:
        reason = annotator.names_note_ or "No names were used."
        names_text = f"not used: {escape(reason[0].lower() + reason[1:])}"
    else:
        names_text = f"used for {count(count_known_names(names), 'tag')}"
    return [
        ("Tags", tags_text(summary["tags"], annotator.min_count)),
        ("Names", names_text),
        *_confidence_facts(summary["photographs"]["used"]),
    ]
