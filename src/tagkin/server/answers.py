"""Answers to pages and scripts, from a catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tagkin.catalogue import (
    Catalogue,
    ContentFile,
    OpenSuggestion,
    StoredKin,
    TagCounts,
    TagProvenance,
)
from tagkin.collection.facts import describe_facts
from tagkin.errors import NotFound
from tagkin.server.order import Reading
from tagkin.server.stacks import (
    Answer,
    Stack,
    in_burst,
    stack_page,
    stack_results,
    stack_suggestions,
)
from tagkin.server.thumbnail_cache import SIZES
from tagkin.wording import main_input, near_text, percent, shares_text

LIKELY = 0.5  # confidence


def picture_address(file: ContentFile, size: int) -> str:
    """Return the address of a photograph's picture, whose longer side has `size` pixels."""
    return f"thumbnails/{size}/{file.content}-{file.digest[:16]}.jpg"


def card(file: ContentFile) -> Answer:
    """Return the name of a photograph and the addresses of its pictures."""
    folder, _, name = file.path.rpartition("/")
    sizes = {n: picture_address(file, n) for n in SIZES}
    return {
        "content": file.content,
        "name": name,
        "folder": folder,
        "thumbnail": sizes[SIZES[0]],
        "picture": sizes[SIZES[-1]],
        "srcset": ", ".join(f"{address} {n}w" for n, address in sizes.items()),
    }


# --- by tag --------------------------------------------------------------------------------


def tags_answer(reading: Reading, start: int, n: int) -> Answer:
    """Return tags with suggestions for selected photographs, best first."""
    tags = reading.tags()
    return {"n_tags": len(tags), "tags": tags[start : start + n]}


def next_tag(reading: Reading, tag: int) -> TagCounts | None:
    """Return the tag to review after this one, or None."""
    tags = reading.tags()
    at = next((i for i, counts in enumerate(tags) if counts.id == tag), -1)
    others = [counts for counts in (*tags[at + 1 :], *tags[: max(at, 0)]) if counts.id != tag]
    return others[0] if others else None


def suggestions_answer(reading: Reading, tag: int, n: int, after: OpenSuggestion | None) -> Answer:
    """Return suggestions of a tag, most confident first; `next` is the cursor of the next page.

    Suggestions for one burst are one stack, unless the page is about that burst.
    """
    counts = reading.catalogue.tags.count(tag)
    tag = counts.id  # the tag may have been renamed since
    if not counts.n_suggested:  # the order may still know suggestions of a forgotten tag
        stacks, last = [], None
    elif reading.is_of_burst:
        suggestions = reading.suggestions(tag, n, after)
        stacks = [[suggestion] for suggestion in suggestions]
        last = suggestions[-1] if len(suggestions) == n else None
    else:
        stacks, last = stack_page(reading, tag, n, after)
    return {
        "tag": reading.count([counts])[0],
        "suggestions": _suggestion_cards(reading, tag, stacks),
        "next": None if last is None else f"{last.confidence!r}:{last.content}",
    }


def question_answer(reading: Reading, strategy: str) -> Answer | None:
    """Return the best page to ask as `suggestions_answer` does; None if no suggestion is open."""
    catalogue = reading.catalogue
    question = reading.question(strategy)
    if question is None:
        return None
    tag, suggestions, pays = question
    return {
        "tag": reading.count([catalogue.tags.count(tag)])[0],
        "suggestions": _suggestion_cards(
            reading, tag, stack_suggestions(reading, tag, suggestions)
        ),
        "next": None,
        "pays": pays,
    }


def _suggestion_cards(reading: Reading, tag: int, stacks: Sequence[Stack]) -> list[Answer]:
    """Return cards of the existing photographs."""
    catalogue = reading.catalogue
    first = [stack[0].content for stack in stacks]
    files = catalogue.photographs.files_of(first)
    burst_of = catalogue.bursts.of(first)
    inputs = catalogue.suggestions.main_inputs(tag, first)
    return [
        {
            **card(files[s.content]),
            "confidence": round(s.confidence, 4),
            "run": s.run,
            "because": inputs.get(s.content, ""),
            "burst": burst_of.get(s.content) if others else None,
            "stack": decisions_on(others),
        }
        for s, *others in _correct_stacks(reading, tag, stacks)
        if s.content in files
    ]


def _correct_stacks(reading: Reading, tag: int, stacks: Sequence[Stack]) -> list[Stack]:
    """Return stacks with corrected confidences."""
    corrected = iter(reading.correct(tag, [s for stack in stacks for s in stack]))
    return [list(islice(corrected, len(stack))) for stack in stacks]


def decisions_on(suggestions: Sequence[OpenSuggestion]) -> list[tuple[int, float, int | None]]:
    """Return suggestions as decisions on them name them: content, confidence and run."""
    return [(s.content, round(s.confidence, 4), s.run) for s in suggestions]


# --- a photograph --------------------------------------------------------------------------


def photograph_answer(reading: Reading, content: int) -> Answer:
    """Return a photograph's suggestions with their kin, and its tags with their sources."""
    catalogue = reading.catalogue
    file = catalogue.photographs.files_of([content]).get(content)
    if file is None:
        raise NotFound(f"There is no photograph with the number {content}.")
    burst, others = in_burst(catalogue, content)
    if reading.is_of_burst:
        others = []  # the page is about each of them
    suggested, open_for = catalogue.suggestions.for_burst([content, *others])
    explained = catalogue.explain(file.path)
    near = {t.tag: near_text(t.n_near_with, explained.n_near) for t in explained.tags}
    kin = _kin_cards(catalogue, [s.proving_kin() for s in suggested])
    names = [s.tag for s in suggested] + [tag.tag for tag in explained.tags]
    numbers = catalogue.tags.numbers_of(names)
    open_for = {
        name: reading.correct(numbers[name], decisions) for name, decisions in open_for.items()
    }
    rows: list[Answer] = [
        {
            "tag": numbers[s.tag],
            "name": s.tag,
            "confidence": round(open_for[s.tag][0].confidence, 4),
            "run": s.run,
            "decisions": decisions_on(open_for[s.tag]),
            "kin": cards,
            "because": main_input(s.shares),
            "shares": shares_text(s.shares),
            "near": near.get(s.tag, ""),
        }
        for s, cards in zip(suggested, kin, strict=True)
    ]
    is_likely = any(row["confidence"] >= LIKELY for row in rows)
    finished = catalogue.completeness.run_that_finished(content)
    return {
        **card(file),
        "facts": describe_facts(explained.facts),
        "finished": finished and {"run": finished[0], "n": finished[2]},
        "offers_finish": not (finished or is_likely) and any(map(_is_answer, explained.tags)),
        "suggestions": sorted(rows, key=lambda row: -row["confidence"]),
        "burst": burst,
        "members": [card(f) for f in catalogue.photographs.files_of(others).values()],
        "tags": [
            {
                "tag": numbers[tag.tag],
                "name": tag.tag,
                "state": tag.state,
                "said": [
                    {"who": said.who, "text": said.brief, "when": said.when} for said in tag.said
                ],
            }
            for tag in explained.tags
            if tag.state != "suggested"
        ],
    }


def _is_answer(tag: TagProvenance) -> bool:
    """Whether a person decided on a tag of this photograph, not on the tag everywhere."""
    return tag.state == "accepted" or (tag.state == "rejected" and tag.confidence is not None)


def _kin_cards(catalogue: Catalogue, lists: Sequence[Sequence[StoredKin]]) -> list[list[Answer]]:
    """Return cards of the existing kin in each list; kin whose share rounds to 0 % are left out."""
    files = catalogue.photographs.files_of({k.content for kin in lists for k in kin})
    return [
        [
            {**card(files[k.content]), "share": round(k.share, 4)}
            for k in kin
            if k.content in files and percent(k.share) != "0 %"
        ]
        for kin in lists
    ]


# --- doubtful ------------------------------------------------------------------------------


def doubts_answer(reading: Reading, kind: str | None, n: int, start: int) -> Answer:
    """Return tags that seem wrong or missing, or doubtful accepted tags, most doubtful first."""
    catalogue = reading.catalogue
    photographs = None if reading.selected is None else reading.selected.photographs
    if kind == "accepted":
        doubts = catalogue.doubts.among_accepted(n, start, photographs)
    else:
        doubts = catalogue.doubts.list_open(kind, n, start, photographs)
    files = catalogue.photographs.files_of([doubt.content for doubt in doubts])
    numbers = catalogue.tags.numbers_of([doubt.tag for doubt in doubts])
    kin = _kin_cards(catalogue, [doubt.kin for doubt in doubts])
    shown_doubts = [
        {
            **card(files[doubt.content]),
            "tag": numbers[doubt.tag],
            "tag_name": doubt.tag,
            "kind": doubt.kind,
            "confidence": round(doubt.confidence, 4),
            "was_accepted": doubt.was_accepted,
            "kin": cards,
        }
        for doubt, cards in zip(doubts, kin, strict=True)
        if doubt.content in files
    ]
    return {
        "doubts": stack_results(
            catalogue,
            shown_doubts,
            same=lambda doubt: (doubt["tag"], doubt["kind"]),
            apart=reading.is_of_burst,
        ),
        "next": start + n if len(doubts) == n else None,
    }
