"""A report: one HTML file that needs nothing else, to look at, to print and to pass on."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from tagkin.annotator.quality import MEASURES, Quality
from tagkin.annotator.suggestions import Finding, PhotoSuggestions
from tagkin.calibration import ReliabilityCurve
from tagkin.errors import InvalidInput
from tagkin.evaluation import LabelReport
from tagkin.images import Failure
from tagkin.pages._cards import finding_card, photo_card
from tagkin.pages._charts import comparison_bars, reliability_chart
from tagkin.pages._files import write_page
from tagkin.pages._html import Markup, data_uri, element
from tagkin.pages._pictures import Pictures
from tagkin.pages._table import label_table

__all__ = ["Comparison", "Report", "comparisons_of", "write_report"]

_FAILURES = 200  # files named one by one


@dataclass(frozen=True)
class Comparison:
    """How well methods do, side by side."""

    title: str
    methods: tuple[str, ...]
    """Such as "Visual neighbours" and "Semantic space"."""
    measures: Mapping[str, tuple[float, ...]]
    """Name of a measure -> one value for each method, from 0 to 1, higher is better."""
    note: str = ""
    """What to know before reading them."""

    def __post_init__(self) -> None:
        for name, values in self.measures.items():
            if len(values) != len(self.methods):
                raise InvalidInput(
                    f"{name} has {len(values)} values for {len(self.methods)} methods."
                )


def comparisons_of(quality: Quality) -> list[Comparison]:
    """The figures of suggestions: visual neighbours, where they are known, and the space."""
    known = {"Visual neighbours": quality.visual, "Semantic space": quality.semantic}
    methods = tuple(method for method, figures in known.items() if figures)

    def values(key: str) -> tuple[float, ...]:
        return tuple(known[method][key] for method in methods)

    return [
        Comparison(
            group.title, methods, {n: values(key) for key, n in group.names.items()}, group.note
        )
        for group in MEASURES
    ]


@dataclass(frozen=True)
class Report:
    """What a report shows. A part that is not given is left out.

    Attributes
    ----------
    title : str
    facts : sequence of pairs of str
        Name and value, such as ("photographs", "1,200"); shown large at the top.
    comparisons : sequence of Comparison
    reliability : ReliabilityCurve, optional
        Whether suggestions of 80 % are right in 80 of 100 cases.
    photographs : sequence of PhotoSuggestions
        Those to be shown; some 250 make a page of a few megabytes.
    truth : mapping of a file to its set of tags, optional
        Where what is to be seen is known: suggestions are marked right or wrong.
    labels : LabelReport, optional
        Made from confidences; rows are shown in its `order`.
    findings : sequence of Finding
    map_png : bytes, optional
        A picture made by `draw_map`.
    failures : sequence of Failure
        Files that were skipped, and why.
    notes : sequence of str
        Paragraphs under the title.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    comparisons: Sequence[Comparison] = ()
    reliability: ReliabilityCurve | None = None
    photographs: Sequence[PhotoSuggestions] = ()
    truth: Mapping[str, AbstractSet[str]] | None = None
    labels: LabelReport | None = None
    findings: Sequence[Finding] = ()
    map_png: bytes | None = field(default=None, repr=False)
    failures: Sequence[Failure] = ()
    notes: Sequence[str] = ()


def write_report(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report as one HTML file: pictures, style and script are inside it.

    Parameters
    ----------
    report : Report
    path : path
        Written whole or not at all; what is there is replaced.

    Returns
    -------
    path : Path
    """
    return write_page(path, _page(report).encode("utf-8"))


def _page(report: Report) -> str:
    style, script = _part("_style.css"), _part("_sort.js")
    # nothing is fetched, and only this style and this script are heeded
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; "
        f"script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    pictures = Pictures()
    sections = list(_sections(report, pictures))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", report.title),
        element("style", Markup(style)),
    )
    body = element(
        "body",
        pictures.store(),
        _header(report),
        element("main", *sections),
        element(
            "footer",
            "Made by tagkin. The kin of a suggestion are the tagged photographs ",
            "that speak for it; a share is a photograph's part of what they say.",
        ),
        element("script", Markup(script)) if report.labels is not None else None,
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _part(name: str) -> str:
    return resources.files("tagkin.pages").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _header(report: Report) -> Markup:
    facts = [
        element("div", element("dt", name), element("dd", value)) for name, value in report.facts
    ]
    return element(
        "header",
        element("h1", report.title),
        *(element("p", note, class_="lead") for note in report.notes),
        element("dl", *facts, class_="facts") if facts else None,
    )


def _sections(report: Report, pictures: Pictures) -> Iterator[Markup]:
    if report.comparisons or report.reliability is not None:
        yield _section("Does it work?", "", _quality(report))
    if report.map_png is not None:
        said = "Every dot is a photograph, near those that are like it."
        yield _section("Map of the collection", said, _map(report.map_png))
    if report.photographs:
        said = "Open a suggestion to see the kin that speak for it."
        if report.truth is not None:
            said += " What is to be seen is known here: ✓ is right, ✗ is wrong."
        cards = [
            photo_card(p, None if report.truth is None else report.truth.get(p.file), pictures)
            for p in report.photographs
        ]
        yield _section("Suggestions", said, element("div", *cards, class_="cards"))
    if report.labels is not None:
        yield _section("Tag by tag", _of_tags(report.labels), label_table(report.labels))
    if report.findings:
        yield _section(
            "Tags to look at again",
            "On photographs that are tagged already, these seem wrong or seem to be missing.",
            element("div", *_findings(report.findings, pictures), class_="cards"),
        )
    if report.failures:
        n = len(report.failures)
        said = f"{n:,} {'file was' if n == 1 else 'files were'} left out."
        yield _section("Skipped files", said, _failures(report.failures))


def _section(title: str, said: str, content: Markup) -> Markup:
    lead = element("p", said, class_="lead") if said else None
    return element("section", element("h2", title), lead, content)


def _quality(report: Report) -> Markup:
    panels = []
    if report.comparisons:
        parts = [part for one in report.comparisons for part in _compared(one)]
        panels.append(element("div", *parts, class_="panel"))
    if report.reliability is not None:
        said = (
            "How sure suggestions are, and how many of them are right. On the dashed line as many "
            "are right as was said. The number at a dot says how many stand behind it, and its "
            "area grows with them; most are at the lower left, too unsure to be suggested."
        )
        chart = reliability_chart(report.reliability)
        note = element("p", said, class_="note")
        head = element("h3", "Can the confidence be trusted?")
        panels.append(element("div", head, chart, note, class_="panel"))
    return element("div", *panels, class_="two" if len(panels) == 2 else None)


def _compared(one: Comparison) -> Iterator[Markup]:
    yield element("h3", one.title)
    yield comparison_bars(one.methods, one.measures)
    if one.note:
        yield element("p", one.note, class_="note")


def _map(png: bytes) -> Markup:
    said = "Photographs as dots in the plane, coloured by tag, with some of them shown small"
    return element("img", src=data_uri(png, "image/png"), alt=said, class_="map")


def _of_tags(labels: LabelReport) -> str:
    said = (
        "Average precision says how far up the photographs with the tag are ranked. Rows are in "
        "the order of its damped value, drawn towards the mean of all tags as if each were on ten "
        "photographs more: on two photographs, 100 % is mostly luck."
    )
    cut = labels.threshold[0]
    if 0 < cut < 1 and (labels.threshold == cut).all():
        said += f" Suggested is what has a confidence of {100 * cut:.0f} % or more."
    return said


def _findings(findings: Sequence[Finding], pictures: Pictures) -> Iterator[Markup]:
    """One card a photograph, in the order in which they come."""
    of_file: dict[str, list[Finding]] = {}
    for one in findings:
        of_file.setdefault(one.file, []).append(one)
    for file, found in of_file.items():
        yield finding_card(file, found, pictures)


def _failures(failures: Sequence[Failure]) -> Markup:
    lines = [
        element("li", element("bdi", one.file), element("span", Markup(" — "), one.reason))
        for one in failures[:_FAILURES]
    ]
    if len(failures) > _FAILURES:
        lines.append(element("li", f"and {len(failures) - _FAILURES:,} more"))
    return element("ul", *lines, class_="plain")
