"""What pages and their scripts are told, as plain data: from a catalogue to dicts and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tagkin.catalogue import Catalogue, ContentFile, Kin, OpenSuggestion, TagCounts
from tagkin.errors import NotFound
from tagkin.server.order import Order
from tagkin.server.thumbnails import SIZES
from tagkin.templating import shown
from tagkin.wording import shares_text

__all__ = [
    "asked_page",
    "doubts_answer",
    "next_photograph",
    "next_tag",
    "photograph_answer",
    "question_answer",
    "search_answer",
    "similar_answer",
    "suggestions_answer",
    "tag_row",
    "tags_answer",
]


def card(one: ContentFile) -> dict[str, Any]:
    """A photograph as a page shows it: its name, and the addresses of its pictures."""
    folder, _, name = one.path.rpartition("/")
    sizes = {n: f"thumbnails/{n}/{one.content}-{one.digest[:16]}.jpg" for n in SIZES}
    return {
        "content": one.content,
        "name": shown(name),
        "folder": shown(folder),
        "thumbnail": sizes[SIZES[0]],
        "picture": sizes[SIZES[-1]],
        "srcset": ", ".join(f"{address} {n}w" for n, address in sizes.items()),
    }


def tag_row(one: TagCounts, live: dict[int, float] | None = None) -> dict[str, Any]:
    """A tag with its counts; `live` is what suggestions are worth now, by tag."""
    expected = (live or {}).get(one.id, one.expected)
    return {
        "id": one.id,
        "name": shown(one.name),
        "found": one.n_found,
        "accepted": one.n_accepted,
        "rejected": one.n_rejected,
        "carried": one.n_found + one.n_accepted,
        "suggested": one.n_suggested,
        "expected": round(max(0.0, expected), 1),
        "quality": None if one.quality is None else round(one.quality, 3),
        "accepted_share": one.accepted_share,
    }


# --- by tag --------------------------------------------------------------------------------


def tags_answer(catalogue: Catalogue, order: Order, start: int, n: int) -> dict[str, Any]:
    """Tags that have suggestions, those that are worth most first."""
    every, live = order.tags(catalogue), order.expected()
    some = every[start : start + n]
    return {"n_tags": len(every), "tags": [tag_row(one, live) for one in some]}


def next_tag(catalogue: Catalogue, order: Order, tag: int) -> dict[str, Any] | None:
    """The tag to go on with after this one; None where there is no other."""
    every = order.tags(catalogue)
    at = next((i for i, one in enumerate(every) if one.id == tag), -1)
    others = [one for one in (*every[at + 1 :], *every[: max(at, 0)]) if one.id != tag]
    return tag_row(others[0]) if others else None


def suggestions_answer(
    catalogue: Catalogue, order: Order, tag: int, n: int, after: OpenSuggestion | None
) -> dict[str, Any]:
    """Suggestions of a tag, the surest first; `next` is where the following part begins."""
    counts = catalogue.tags.count(tag)
    tag = counts.id  # a page may be older than the tag's name
    found = order.suggestions(catalogue, tag, n, after)
    last = found[-1] if len(found) == n else None
    return {
        "tag": {"id": tag, "name": shown(counts.name)} | _left(catalogue, order, tag),
        "suggestions": _suggestion_cards(catalogue, found),
        "next": None if last is None else f"{last.confidence!r}:{last.content}",
    }


def question_answer(catalogue: Catalogue, order: Order, strategy: str) -> dict[str, Any]:
    """The page that is worth most; null where nothing is open."""
    asked = order.question(catalogue, strategy)
    if asked is None:
        return {"question": None}
    return {
        "question": {
            "tag": {"id": asked.tag, "name": shown(catalogue.tags.count(asked.tag).name)},
            "suggestions": _suggestion_cards(catalogue, asked.suggestions),
            "expected_right": round(asked.expected_right, 1),
            "expected_actions": round(asked.expected_actions, 1),
        }
    }


def _suggestion_cards(catalogue: Catalogue, each: Sequence[OpenSuggestion]) -> list[dict[str, Any]]:
    """Return cards of the suggested photographs that are there, with what a decision keeps."""
    there = catalogue.photographs.files_of([one.content for one in each])
    return [
        card(there[one.content]) | {"confidence": round(one.confidence, 4), "run": one.run}
        for one in each
        if one.content in there
    ]


def asked_page(catalogue: Catalogue, order: Order, asked: dict[str, Any]) -> dict[str, Any]:
    """A question in the form of `suggestions_answer`: it has no next part."""
    tag = asked["tag"] | _left(catalogue, order, asked["tag"]["id"])
    return {"tag": tag, "suggestions": asked["suggestions"], "next": None}


def _left(catalogue: Catalogue, order: Order, tag: int) -> dict[str, Any]:
    """How many suggestions of a tag are open, and how many of these are likely right."""
    counts = catalogue.tags.count(tag)
    expected = order.expected().get(tag, counts.expected)
    return {"suggested": counts.n_suggested, "expected": round(max(0.0, expected), 1)}


# --- by photograph -------------------------------------------------------------------------


def next_photograph(catalogue: Catalogue, after: int) -> int | None:
    """The next photograph that has suggestions; from the start again after the last."""
    found = catalogue.photographs.to_review(1, after) or catalogue.photographs.to_review(1)
    return found[0][0] if found else None


def photograph_answer(catalogue: Catalogue, order: Order, content: int) -> dict[str, Any]:
    """A photograph: its suggestions with their kin, and its tags with who says so."""
    one = catalogue.photographs.files_of([content]).get(content)
    if one is None:
        raise NotFound(f"There is no photograph with the number {content}.")
    suggested = catalogue.suggestions.for_photograph(content)
    explained = catalogue.explain(one.path)
    kin = _kin_cards(catalogue, [s.kin for s in suggested])
    numbers = catalogue.tags.numbers_of(
        [s.tag for s in suggested] + [tag.tag for tag in explained.tags]
    )
    now = order.confidences(content, [numbers[one.tag] for one in suggested])
    rows: list[dict[str, Any]] = [
        {
            "tag": numbers[s.tag],
            "name": shown(s.tag),
            "confidence": round(now.get(numbers[s.tag], s.confidence), 4),
            "run": s.run,
            "kin": some,
            "name_share": _rounded(s.name_share),
            "readout_share": _rounded(s.readout_share),
            "shares": shares_text(s.name_share, s.readout_share),
        }
        for s, some in zip(suggested, kin, strict=True)
    ]
    return card(one) | {
        "suggestions": sorted(rows, key=lambda row: -row["confidence"]),
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
        "next": next_photograph(catalogue, content),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _kin_cards(catalogue: Catalogue, each: Sequence[Sequence[Kin]]) -> list[list[dict[str, Any]]]:
    """Kin with their pictures, those that are there."""
    there = catalogue.photographs.files_of({kin.content for some in each for kin in some})
    return [
        [
            card(there[kin.content]) | {"share": round(kin.share, 4)}
            for kin in some
            if kin.content in there
        ]
        for some in each
    ]


# --- doubtful ------------------------------------------------------------------------------


def doubts_answer(
    catalogue: Catalogue, order: Order, kind: str | None, n: int, start: int
) -> dict[str, Any]:
    """Tags that seem wrong or missing, the surest first; or those accepted, the least sure."""
    if kind == "accepted":
        found = catalogue.doubts.among_accepted(order.doubted(), n, start)
    else:
        found = catalogue.doubts.list_open(kind, n, start)
    there = catalogue.photographs.files_of([one.content for one in found])
    numbers = catalogue.tags.numbers_of([one.tag for one in found])
    kin = _kin_cards(catalogue, [one.kin for one in found])
    return {
        "doubts": [
            card(there[one.content])
            | {
                "tag": numbers[one.tag],
                "tag_name": shown(one.tag),
                "kind": one.kind,
                "confidence": round(one.confidence, 4),
                "was_accepted": one.was_accepted,
                "kin": some,
            }
            for one, some in zip(found, kin, strict=True)
            if one.content in there
        ],
        "next": start + n if len(found) == n else None,
    }


# --- search --------------------------------------------------------------------------------


def search_answer(
    catalogue: Catalogue,
    *,
    tags: Sequence[int],
    untagged: bool,
    name: str | None,
    n: int,
    after: int,
) -> dict[str, Any]:
    """Photographs that carry tags, or none, or whose path has a text in it."""
    found = catalogue.photographs.search(tags, untagged=untagged, name=name, n=n, after=after)
    return {
        "photographs": [_result(path, one) for _, path, one in found],
        "next": found[-1][0] if len(found) == n else None,
    }


def similar_answer(
    catalogue: Catalogue, found: Sequence[tuple[int, float]]
) -> list[dict[str, Any]]:
    """Photographs with how similar each is, those that are there."""
    there = catalogue.photographs.files_of([content for content, _ in found])
    return [
        card(there[content]) | {"similarity": round(cosine, 4)}
        for content, cosine in found
        if content in there
    ]


def _result(path: str, one: ContentFile | None) -> dict[str, Any]:
    if one is not None:
        return card(one._replace(path=path))
    folder, _, name = path.rpartition("/")  # the last scan could not read it
    return {
        "content": None,
        "name": shown(name),
        "folder": shown(folder),
        "thumbnail": None,
        "picture": None,
    }
