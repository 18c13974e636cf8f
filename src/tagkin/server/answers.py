"""Answers to pages and scripts, as plain dicts and lists from a catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tagkin.catalogue import (
    Catalogue,
    ContentFile,
    OpenSuggestion,
    StoredKin,
    TagCounts,
    TagProvenance,
)
from tagkin.catalogue.selection import Selection
from tagkin.catalogue.word_search import WordMatch
from tagkin.errors import NotFound
from tagkin.server.filtered_views import View, Views
from tagkin.server.order import Reading
from tagkin.server.stacks import Stack, in_series, stack_page, stack_results, stack_suggestions
from tagkin.server.thumbnail_cache import SIZES
from tagkin.templating import shown
from tagkin.wording import is_by_name, percent, shares_text

_LIKELY = 0.5  # confidence


def card(file: ContentFile) -> dict[str, Any]:
    """Return the name of a photograph and the addresses of its pictures."""
    folder, _, name = file.path.rpartition("/")
    sizes = {n: f"thumbnails/{n}/{file.content}-{file.digest[:16]}.jpg" for n in SIZES}
    return {
        "content": file.content,
        "name": shown(name),
        "folder": shown(folder),
        "thumbnail": sizes[SIZES[0]],
        "picture": sizes[SIZES[-1]],
        "srcset": ", ".join(f"{address} {n}w" for n, address in sizes.items()),
    }


def tag_row(tag: TagCounts) -> dict[str, Any]:
    """Return a tag with its counts."""
    return {
        "id": tag.id,
        "name": shown(tag.name),
        "found": tag.n_found,
        "accepted": tag.n_accepted,
        "rejected": tag.n_rejected,
        "carried": tag.n_found + tag.n_accepted,
        "suggested": tag.n_suggested,
        "expected": round(max(0.0, tag.expected), 1),
        "quality": None if tag.quality is None else round(tag.quality, 3),
        "accepted_share": tag.accepted_share,
        "hidden": tag.is_hidden,
    }


# --- by tag --------------------------------------------------------------------------------


def tags_answer(reading: Reading, start: int, n: int) -> dict[str, Any]:
    """Return tags with suggestions for selected photographs, best first."""
    tags = reading.tags()
    return {"n_tags": len(tags), "tags": [tag_row(tag) for tag in tags[start : start + n]]}


def next_tag(reading: Reading, tag: int) -> dict[str, Any] | None:
    """Return the tag to review after this one, or None."""
    tags = reading.tags()
    at = next((i for i, counts in enumerate(tags) if counts.id == tag), -1)
    others = [counts for counts in (*tags[at + 1 :], *tags[: max(at, 0)]) if counts.id != tag]
    return tag_row(others[0]) if others else None


def suggestions_answer(
    reading: Reading, tag: int, n: int, after: OpenSuggestion | None
) -> dict[str, Any]:
    """Return suggestions of a tag, most confident first; `next` is the cursor of the next page.

    Suggestions for one series are one stack, unless the page is about that series.
    """
    counts = reading.catalogue.tags.count(tag)
    tag = counts.id  # the tag may have been renamed since
    if not counts.n_suggested:  # the order may still know suggestions of a hidden tag
        stacks, last = [], None
    elif reading.is_of_series:
        suggestions = reading.suggestions(tag, n, after)
        stacks = [[suggestion] for suggestion in suggestions]
        last = suggestions[-1] if len(suggestions) == n else None
    else:
        stacks, last = stack_page(reading, tag, n, after)
    return {
        "tag": _counted_tag(counts, reading),
        "suggestions": _suggestion_cards(reading, tag, stacks),
        "next": None if last is None else f"{last.confidence!r}:{last.content}",
    }


def question_answer(reading: Reading, strategy: str) -> dict[str, Any] | None:
    """Return the best page to ask as `suggestions_answer` does; None if no suggestion is open."""
    catalogue = reading.catalogue
    question = reading.order.question(catalogue, strategy, reading.selected)
    if question is None:
        return None
    tag, suggestions = question
    return {
        "tag": _counted_tag(catalogue.tags.count(tag), reading),
        "suggestions": _suggestion_cards(
            reading, tag, stack_suggestions(reading, tag, suggestions)
        ),
        "next": None,
    }


def _suggestion_cards(reading: Reading, tag: int, stacks: Sequence[Stack]) -> list[dict[str, Any]]:
    """Return cards of the existing photographs, with the confidence and run for decisions.

    A card of a stack has its ``series``, and the other decisions in ``stack``.
    """
    catalogue = reading.catalogue
    first = [stack[0].content for stack in stacks]
    files = catalogue.photographs.files_of(first)
    series_of = catalogue.series.of(first)
    by_name = catalogue.suggestions.made_by_name(tag, first)
    return [
        card(files[s.content])
        | {
            "confidence": round(s.confidence, 4),
            "run": s.run,
            "by_name": s.content in by_name,
            "series": series_of.get(s.content) if others else None,
            "stack": [[o.content, round(o.confidence, 4), o.run] for o in others],
        }
        for s, *others in (reading.correct(tag, stack) for stack in stacks)
        if s.content in files
    ]


def _counted_tag(counts: TagCounts, reading: Reading) -> dict[str, Any]:
    """Return a tag with its counts; suggestions are counted for the selected photographs."""
    row = tag_row(reading.order.expect(reading.catalogue, [counts])[0])
    if reading.selected is not None:
        n, right = reading.selected.suggestions.counts.get(counts.id, (0, 0.0))
        row |= {"suggested": n, "expected": round(right, 1)}
    return row


# --- by photograph -------------------------------------------------------------------------


def _next_photograph(catalogue: Catalogue, after: int, selected: View | None) -> int | None:
    """Return the next photograph with suggestions; the first follows the last."""
    if selected is not None:
        return selected.suggestions.next_content(after)
    return catalogue.photographs.next_to_review(after)


def next_photograph_answer(reading: Reading, after: int) -> dict[str, Any] | None:
    """Return the next photograph with suggestions as `photograph_answer` does, or None."""
    content = _next_photograph(reading.catalogue, after, reading.selected)
    return None if content is None else photograph_answer(reading, content)


def photograph_answer(reading: Reading, content: int) -> dict[str, Any]:
    """Return a photograph's suggestions with their kin, and its tags with their sources.

    The kin of a suggestion have a real share of its score; `all_kin` are all stored kin.
    `finished` has the run that finished the photograph, when, and how many photographs it finished.
    `offers_finish` tells that all likely suggestions were answered, so it may be finished.
    """
    catalogue = reading.catalogue
    file = catalogue.photographs.files_of([content]).get(content)
    if file is None:
        raise NotFound(f"There is no photograph with the number {content}.")
    series, others = in_series(catalogue, content)
    if reading.is_of_series:
        others = []  # the page is about each of them
    suggested, open_for = catalogue.suggestions.for_series([content, *others])
    explained = catalogue.explain(file.path)
    kin = _kin_cards(catalogue, [s.proving_kin() for s in suggested])
    all_kin = _kin_cards(catalogue, [s.kin for s in suggested])
    names = [s.tag for s in suggested] + [tag.tag for tag in explained.tags]
    numbers = catalogue.tags.numbers_of(names)
    open_for = {
        name: reading.correct(numbers[name], decisions) for name, decisions in open_for.items()
    }
    rows: list[dict[str, Any]] = [
        {
            "tag": numbers[s.tag],
            "name": shown(s.tag),
            "confidence": round(open_for[s.tag][0].confidence, 4),
            "run": s.run,
            "decisions": [[o.content, round(o.confidence, 4), o.run] for o in open_for[s.tag]],
            "kin": proof,
            "all_kin": cards,
            "by_name": is_by_name(s.name_share, s.readout_share),
            "name_share": _round_share(s.name_share),
            "readout_share": _round_share(s.readout_share),
            "shares": shares_text(s.name_share, s.readout_share),
        }
        for s, proof, cards in zip(suggested, kin, all_kin, strict=True)
    ]
    is_likely = any(row["confidence"] >= _LIKELY for row in rows)
    finished = catalogue.completeness.run_that_finished(content)
    return card(file) | {
        "finished": finished and dict(zip(("run", "when", "n"), finished, strict=True)),
        "offers_finish": not (finished or is_likely) and any(map(_is_answer, explained.tags)),
        "suggestions": sorted(rows, key=lambda row: -row["confidence"]),
        "series": series,
        "members": [card(f) for f in catalogue.photographs.files_of(others).values()],
        "tags": [
            {
                "tag": numbers[tag.tag],
                "name": shown(tag.tag),
                "state": tag.state,
                "said": [
                    {"who": said.who, "text": shown(said.text), "when": said.when}
                    for said in tag.said
                ],
            }
            for tag in explained.tags
            if tag.state != "suggested"
        ],
        "others": [
            {
                "tag": other.id,
                "name": shown(other.name),
                "kind": other.kind,
                "said": shown(other.text),
            }
            for other in explained.others
        ],
        "next": _next_photograph(catalogue, content, reading.selected),
    }


def _is_answer(tag: TagProvenance) -> bool:
    """Whether a person decided on a tag of this photograph, not on the tag everywhere."""
    return tag.state == "accepted" or (tag.state == "rejected" and tag.confidence is not None)


def _round_share(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _kin_cards(
    catalogue: Catalogue, lists: Sequence[Sequence[StoredKin]]
) -> list[list[dict[str, Any]]]:
    """Return cards of the existing kin in each list; kin whose share rounds to 0 % are left out."""
    files = catalogue.photographs.files_of({k.content for kin in lists for k in kin})
    return [
        [
            card(files[k.content]) | {"share": round(k.share, 4)}
            for k in kin
            if k.content in files and percent(k.share) != "0 %"
        ]
        for kin in lists
    ]


# --- doubtful ------------------------------------------------------------------------------


def doubts_answer(reading: Reading, kind: str | None, n: int, start: int) -> dict[str, Any]:
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
        card(files[doubt.content])
        | {
            "tag": numbers[doubt.tag],
            "tag_name": shown(doubt.tag),
            "kind": doubt.kind,
            "confidence": round(doubt.confidence, 4),
            "was_accepted": doubt.was_accepted,
            "kin": cards,
        }
        for doubt, cards in zip(doubts, kin, strict=True)
        if doubt.content in files
    ]
    return {
        "doubts": stack_results(catalogue, shown_doubts, "tag", "kind", apart=reading.is_of_series),
        "next": start + n if len(doubts) == n else None,
    }


# --- search --------------------------------------------------------------------------------


def completions_answer(catalogue: Catalogue, text: str, others: bool) -> dict[str, Any]:
    """Return tags that complete a typed text; with `others`, of all kinds."""
    tags = [
        {"id": number, "name": name, "kind": "keyword"}
        for number, name in catalogue.tags.complete(text)
    ]
    if others:
        more = catalogue.other_tags.complete(text)
        tags += [{"id": tag.id, "name": tag.name, "kind": tag.kind} for tag in more]
    return {"tags": tags}


def search_answer(
    catalogue: Catalogue,
    views: Views,
    selection: Selection,
    *,
    name: str | None,
    n: int,
    after: int,
) -> dict[str, Any]:
    """Return photographs that filters leave, with a text in their path."""
    # SQLite finds tags and photographs without tags itself
    untagged = bool(selection.untagged)
    others = replace(selection, tags=(), untagged=None if untagged else selection.untagged)
    selected = views.select(catalogue, others)
    among = None if selected is None else selected.photographs.numbers.tolist()
    matches = catalogue.photographs.search(
        selection.tags, untagged=untagged, name=name, among=among, n=n, after=after
    )
    cards = [_result_card(path, file) for _, path, file in matches]
    is_of_series = (selection.series or "").isdecimal()
    return {
        "photographs": stack_results(catalogue, cards, apart=is_of_series),
        "next": matches[-1][0] if len(matches) == n else None,
    }


def words_answer(
    reading: Reading, ranked: Sequence[WordMatch], *, name: str | None, n: int, after: int
) -> dict[str, Any]:
    """Return selected photographs in the order of `ranked` matches, with a text in their path.

    `after` is the number of photographs on earlier pages. `fit` is 1 for the best match.
    """
    catalogue, selected = reading.catalogue, reading.selected
    if selected is not None or name:
        among = None if selected is None else selected.photographs.numbers.tolist()
        matches = catalogue.photographs.search(name=name, among=among, n=-1)
        allowed = {file.content for _, _, file in matches if file is not None}
        ranked = [match for match in ranked if match.content in allowed]
    page = ranked[after : after + n]
    files = catalogue.photographs.files_of([match.content for match in page])
    cards = [card(files[c]) | {"fit": round(fit, 2)} for c, fit in page if c in files]
    return {
        "photographs": stack_results(catalogue, cards, apart=reading.is_of_series),
        "next": after + n if len(ranked) > after + n else None,
    }


def similar_answer(
    reading: Reading, nearest: Sequence[tuple[int, float]], n: int
) -> list[dict[str, Any]]:
    """Return cards of the `n` nearest selected photographs with their similarities."""
    catalogue, selected = reading.catalogue, reading.selected
    if selected is not None:
        has = selected.photographs.has([content for content, _ in nearest])
        nearest = [nearest[i] for i in np.flatnonzero(has).tolist()]
    nearest = nearest[:n]
    files = catalogue.photographs.files_of([content for content, _ in nearest])
    cards = [
        card(files[content]) | {"similarity": round(cosine, 4)}
        for content, cosine in nearest
        if content in files
    ]
    return stack_results(catalogue, cards)


def _result_card(path: str, file: ContentFile | None) -> dict[str, Any]:
    if file is not None:
        return card(file._replace(path=path))
    folder, _, name = path.rpartition("/")  # the last scan could not read it
    names = {"name": shown(name), "folder": shown(folder)}
    return {"content": None, "thumbnail": None, "picture": None} | names
