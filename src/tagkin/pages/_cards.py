"""Cards: a photograph, what is suggested for it or found on it, and the kin that say so."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from tagkin.annotator.suggestions import Finding, Kin, PhotoSuggestions, TagSuggestion
from tagkin.pages._html import Markup, bar, element, join
from tagkin.pages._pictures import Pictures
from tagkin.pages._text import name_of

__all__ = ["finding_card", "photo_card"]

_KIN = 6


def photo_card(
    photo: PhotoSuggestions, truth: AbstractSet[str] | None, pictures: Pictures
) -> Markup:
    """A photograph with its tags and suggestions; with the truth, whether they are right."""
    suggested = [_suggestion(one, truth, pictures) for one in photo.suggestions]
    if not suggested:
        suggested = [element("p", "No tag is suggested.", class_="note")]
    missed = sorted((truth or set()) - {s.tag for s in photo.suggestions} - set(photo.tags))
    text = join((_tag(tag) for tag in missed), ", ")
    also = element("p", "Also to be seen: ", text, class_="missed") if missed else None
    return _card(photo.file, [_chips(photo.tags), *suggested, also], pictures)


def finding_card(file: str, findings: Sequence[Finding], pictures: Pictures) -> Markup:
    """A tagged photograph on which tags seem wrong or seem to be missing."""
    return _card(file, [_finding(one, pictures) for one in findings], pictures)


def _card(file: str, content: Sequence[Markup | None], pictures: Pictures) -> Markup:
    name = element("p", element("bdi", name_of(file, 40)), class_="name", title=file)
    text = element("div", name, *content)
    return element("article", pictures.large(file), text, class_="card")


def _chips(tags: Sequence[str]) -> Markup | None:
    chips = [element("li", _tag(tag)) for tag in tags]
    return (
        element("ul", *chips, class_="chips", aria_label="Tags that it carries") if tags else None
    )


def _suggestion(one: TagSuggestion, truth: AbstractSet[str] | None, pictures: Pictures) -> Markup:
    verdict = None
    if truth is not None:
        word = "right" if one.tag in truth else "wrong"
        mark = "✓" if one.tag in truth else "✗"
        verdict = element(
            "span", mark, class_=f"verdict {word}", role="img", aria_label=word, title=word
        )
    tag = element("span", _tag(one.tag), verdict, class_="tag")
    return _folded(tag, one.confidence, one.kin, "", pictures)


def _finding(one: Finding, pictures: Pictures) -> Markup:
    wrong = one.kind == "wrong"
    text = "✗ seems wrong" if wrong else "+ seems missing"
    verdict = element("span", text, class_=f"verdict below {'wrong' if wrong else 'right'}")
    tag = element("span", _tag(one.tag), verdict, class_="tag")
    said = "Its nearest kin; few or none carry the tag." if wrong else "Kin that carry the tag."
    return _folded(tag, one.confidence, one.kin, said, pictures)


def _folded(
    tag: Markup, confidence: float, kin: Sequence[Kin], said: str, pictures: Pictures
) -> Markup:
    """One line that opens to show the kin."""
    number = element("span", f"{100 * confidence:.0f} %", class_="number")
    rest = kin[_KIN:]
    more = f"and {len(rest)} more with {_percent(sum(k.share for k in rest))}" if rest else None
    return element(
        "details",
        element("summary", tag, bar(confidence), number),
        element("p", said, class_="note") if said else None,
        element("ul", *(_kin(k, pictures) for k in kin[:_KIN]), class_="kin") if kin else None,
        element("p", more, class_="note") if more else None,
        None if kin else element("p", "No kin are known.", class_="note"),
    )


def _kin(kin: Kin, pictures: Pictures) -> Markup:
    return element(
        "li",
        pictures.small(kin.file),
        bar(kin.share),
        element("span", _percent(kin.share), class_="number"),
        element("span", element("bdi", name_of(kin.file, 18)), title=kin.file),
    )


def _tag(tag: str) -> Markup:
    return element("bdi", tag)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
