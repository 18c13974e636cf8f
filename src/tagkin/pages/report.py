"""Write a report as a single self-contained HTML file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from tagkin.annotator.quality import INPUT_MEASURES, MEASURES, Measures, Quality
from tagkin.annotator.suggestions import Finding, PhotoSuggestions
from tagkin.calibration import ReliabilityCurve
from tagkin.errors import InvalidInput, StorageError
from tagkin.evaluation import LabelReport
from tagkin.filesystem import write_whole
from tagkin.images import Failure
from tagkin.pages.pictures import Pictures, pictures_of
from tagkin.pages.rendering import read_part, render

__all__ = ["Comparison", "Report", "comparisons_of", "write_page", "write_report"]

_N_FAILURES = 200  # files listed by name
_FEWEST = 5  # minimum pairs in a bin; the share of fewer pairs says little
_SMALLEST, _LARGEST = 3.0, 11.0  # radius of a dot


@dataclass(frozen=True)
class Comparison:
    """Metrics of several methods, side by side."""

    title: str
    methods: tuple[str, ...]
    """Such as "Visual neighbours" and "Semantic space"."""
    measures: Mapping[str, tuple[float, ...]]
    """Name of a measure -> one value for each method, from 0 to 1, higher is better."""
    note: str = ""
    """Explanation of the measures."""

    def __post_init__(self) -> None:
        for name, values in self.measures.items():
            if len(values) != len(self.methods):
                raise InvalidInput(
                    f"{name} has {len(values)} values for {len(self.methods)} methods. Give one "
                    "value per method."
                )

    def rows(self) -> Iterator[tuple[str, list[tuple[str, float, bool]]]]:
        """Yield every measure with each method's value, and whether it is the best."""
        for name, values in self.measures.items():
            best = max((value for value in values if not math.isnan(value)), default=math.nan)
            pairs = zip(self.methods, values, strict=True)
            yield name, [(method, value, value == best) for method, value in pairs]


def comparisons_of(quality: Quality) -> list[Comparison]:
    """Return the metrics of both spaces as far as known, and of each input if there are several."""
    known = {"Visual neighbours": quality.visual, "Semantic space": quality.semantic}
    spaces = {method: metrics for method, metrics in known.items() if metrics}
    compared = [_compare(group, spaces) for group in MEASURES]
    return [*compared, _compare(INPUT_MEASURES, quality.by_input)] if quality.inputs else compared


def _compare(group: Measures, known: Mapping[str, Mapping[str, float]]) -> Comparison:
    measures = {
        name: tuple(metrics[key] for metrics in known.values()) for key, name in group.names.items()
    }
    return Comparison(group.title, tuple(known), measures, group.note)


@dataclass(frozen=True)
class Report:
    """The contents of a report; all parts but the title are optional.

    Attributes
    ----------
    title : str
    facts : sequence of pairs of str
        Name and value, such as ("photographs", "1,200"); shown large at the top.
    comparisons : sequence of Comparison
    reliability : ReliabilityCurve, optional
        Share of correct suggestions at each confidence.
    photographs : sequence of PhotoSuggestions
        Photographs to show; about 250 give a page of a few megabytes.
    truth : mapping of a file to its set of tags, optional
        True tags, if known, to mark suggestions right or wrong.
    labels : LabelReport, optional
        Metrics per tag, computed from confidences; rows are in its `order`.
    findings : sequence of Finding
    failures : sequence of Failure
        Skipped files with reasons.
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
    failures: Sequence[Failure] = ()
    notes: Sequence[str] = ()


def write_report(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report as one HTML file with its pictures, style and script.

    Parameters
    ----------
    report : Report
    path : path
        Written completely or not at all; an existing file is replaced.
    """
    return write_page(path, _render(report).encode("utf-8"))


def write_page(path: str | os.PathLike[str], data: bytes) -> Path:
    """Replace a file with `data` once the data is safely on the disk.

    Missing folders are created. If it fails, the previous file is unchanged.
    """
    path = Path(path)
    try:
        if not path.name or path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"Could not write {path}: {getattr(error, 'strerror', None) or error}. The "
            "previous file is unchanged. Free some space, or choose another folder."
        ) from error
    return path


def _render(report: Report) -> str:
    labels = report.labels
    return render(
        "report.html.jinja",
        report=report,
        style=read_part("report.css"),
        script=read_part("sort.js"),
        pictures=_pictures(report),
        cards=[_card(photo, report.truth) for photo in report.photographs],
        dots=None if report.reliability is None else _dots(report.reliability),
        tags=None if labels is None else list(_tag_rows(labels)),
        threshold=None if labels is None else _common_threshold(labels),
        findings=_by_file(report.findings),
        n_failures=_N_FAILURES,
    )


def _pictures(report: Report) -> Pictures:
    photos, findings = report.photographs, report.findings
    files = [*(photo.file for photo in photos), *(finding.file for finding in findings)]
    kin = [suggestion.kin for photo in photos for suggestion in photo.suggestions]
    return pictures_of(files, [*kin, *(finding.kin for finding in findings)])


def _card(
    photo: PhotoSuggestions, truths: Mapping[str, AbstractSet[str]] | None
) -> tuple[PhotoSuggestions, AbstractSet[str] | None, list[str]]:
    """Return a photograph, its true tags if known, and the true tags that are missing."""
    truth = None if truths is None else truths.get(photo.file)
    shown = {*photo.tags, *(suggestion.tag for suggestion in photo.suggestions)}
    return photo, truth, sorted((truth or set()) - shown)


def _by_file(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Group findings by photograph, in order."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.file, []).append(finding)
    return groups


def _dots(curve: ReliabilityCurve) -> list[dict[str, float]]:
    """Return the bins of a curve with enough pairs of a photograph and a tag.

    A dot's area is proportional to the pairs in its bin, relative to the fullest bin. The first bin
    is left out of that maximum, because nearly all pairs are there, too unlikely to be suggested.
    """
    fullest = max(curve.n_pairs[1:].tolist(), default=0)
    dots = []
    for predicted, observed, n in zip(*(column.tolist() for column in curve), strict=True):
        if n >= _FEWEST:
            radius = max(_SMALLEST, _LARGEST * math.sqrt(min(1.0, n / max(fullest, 1))))
            dots.append(
                {"predicted": predicted, "observed": observed, "n_pairs": n, "radius": radius}
            )
    return dots


def _tag_rows(labels: LabelReport) -> Iterator[dict[str, object]]:
    """Yield the quality of every tag, in the report's order; NaN if a share is unknown."""
    damped = labels.damped_precision
    for t in labels.order:
        pairs = zip(labels.confused_with[t], labels.confused_count[t], strict=True)
        yield {
            "tag": str(labels.names[t]),
            "support": int(labels.support[t]),
            "average_precision": float(labels.average_precision[t]),
            "damped": float(damped[t]),
            "n_assigned": int(labels.n_assigned[t]),
            "precision": float(labels.precision[t]),
            "recall": float(labels.recall[t]),
            "confused": [(str(labels.names[other]), int(n)) for other, n in pairs if other >= 0],
        }


def _common_threshold(labels: LabelReport) -> float | None:
    """Return the minimum confidence of suggestions, or None if it differs between tags."""
    first = float(labels.min_score[0])
    return first if 0 < first < 1 and (labels.min_score == first).all() else None
