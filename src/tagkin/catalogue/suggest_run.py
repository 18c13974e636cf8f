"""Suggesting tags for the photographs of a catalogue, with an annotator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from tagkin.catalogue.database import Database, Run, set_fields
from tagkin.catalogue.moment_index import MomentIndex
from tagkin.catalogue.photographs import TaggedContent
from tagkin.catalogue.suggestions import Suggestions
from tagkin.images import Failure
from tagkin.progress import Progress

if TYPE_CHECKING:
    from tagkin.annotator import Annotator, PhotoSuggestions

__all__ = ["OnStored", "Steps", "SuggestOptions", "SuggestRun", "contents_by_path", "suggest_tags"]

# photographs to suggest for at once: the review page shows them when they are stored, and decisions
# wait while they are stored
_BLOCK = 100


OnStored: TypeAlias = "Callable[[Sequence[PhotoSuggestions]], None]"
"""A function of the suggestions that were stored for some photographs."""


_N, _THRESHOLD = 20, 0.05  # of a review
# A person looks at all suggestions of a review, so unlikely suggestions are included. On COCO there
# are nine or ten per photograph, and they include four of five missing tags.


@dataclass(frozen=True)
class SuggestOptions:
    """Which tags to suggest, as in `Annotator.suggest`."""

    n: int | None = None
    threshold: float | None = None
    precision: float | None = None
    n_kin: int = 5
    vocabulary: Sequence[str] | None = None
    keeps_open: bool = False
    """Whether open suggestions stay as long as they are likely."""
    folder: str | None = None
    only_untagged: bool = False
    """How the photographs were chosen, for the history."""

    @classmethod
    def for_review(cls) -> Self:
        """Return the options of a review: likely and unlikely tags."""
        return cls(_N, _THRESHOLD, keeps_open=True)

    def by_name(self) -> Self:
        """Return the options for an annotator that is not fitted; the default is as in a review."""
        if self.n is None and self.threshold is None:
            return replace(self, n=_N, threshold=_THRESHOLD, precision=None)
        return replace(self, precision=None)

    def to_dict(self) -> dict[str, object]:
        """Return the options that are set, for the history."""
        plain: dict[str, object] = asdict(self)
        if self.vocabulary is not None:
            plain["vocabulary"] = len(self.vocabulary)
        return set_fields(plain)


class Steps(NamedTuple):
    """Functions to call while tags are suggested."""

    progress: Progress
    on_stored: OnStored | None = None


@dataclass
class SuggestRun:
    """The result of a run that suggested tags."""

    run: int
    n_photographs: int = 0
    """Photographs that were considered."""
    n_with: int = 0
    """Photographs that got suggestions."""
    n_suggestions: int = 0
    n_taught: int = 0
    """Photographs whose tags changed since the training; the suggestions use the new tags."""
    failures: list[Failure] = field(default_factory=list)


def suggest_tags(
    database: Database,
    run: Run,
    annotator: Annotator,
    contents: Sequence[TaggedContent],
    options: SuggestOptions,
    steps: Steps,
) -> SuggestRun:
    """Suggest tags for contents and store them."""
    result = SuggestRun(run.id)
    kin_contents, moments = contents_by_path(database, annotator), MomentIndex(database)
    for start in range(0, len(contents), _BLOCK):
        steps.progress("Suggesting", start, len(contents))
        block = contents[start : start + _BLOCK]
        result.n_photographs += len(block)
        seen = annotator.read_features([content.file for content in block])
        result.failures += seen.failures
        by_file = {content.file: content for content in block}
        content_of = {file: content.content for file, content in by_file.items()}
        unread = [content_of[failure.file] for failure in seen.failures]
        Suggestions(database).mark(run.id, unread)
        if not seen.files:
            continue
        offered = None
        if options.keeps_open:
            tags = Suggestions(database).tags_of([content_of[file] for file in seen.files])
            offered = [tags.get(content_of[file], []) for file in seen.files]
        suggested = annotator.suggest(
            seen,
            n=options.n,
            threshold=options.threshold,
            precision=options.precision,
            n_kin=options.n_kin,
            vocabulary=options.vocabulary,
            offered=offered,
            moments=moments.of([content_of[file] for file in seen.files]),
            present=[by_file[file].tags for file in seen.files],
            rejected=[by_file[file].rejected for file in seen.files],
            complete=[by_file[file].is_complete for file in seen.files],
        )
        rows = [(content_of[photo.file], photo.suggestions) for photo in suggested]
        stored = Suggestions(database).replace(run.id, rows, kin_contents)
        result.n_suggestions += sum(map(len, stored))
        if steps.on_stored is not None:
            pairs = zip(suggested, stored, strict=True)
            steps.on_stored([replace(photo, suggestions=tuple(s)) for photo, s in pairs if s])
    steps.progress("Suggesting", len(contents), len(contents))
    result.n_with = database.value(
        "SELECT count(DISTINCT content) FROM suggestions WHERE run = ?", (run.id,)
    )
    run.outcome |= {
        "photographs": result.n_photographs,
        "with_suggestions": result.n_with,
        "suggestions": result.n_suggestions,
    }
    return result


def contents_by_path(database: Database, annotator: Annotator) -> dict[str, int]:
    """Return contents by an annotator's paths of its photographs; empty if it is not fitted."""
    if not hasattr(annotator, "paths_"):
        return {}
    numbers = {d.hex(): c for c, d in database.rows("SELECT id, digest FROM contents")}
    pairs = zip(annotator.paths_, map(str, annotator.digests_), strict=True)
    return {path: numbers[digest] for path, digest in pairs if digest in numbers}
