"""Suggestions for the photographs of the small folder."""

from collections.abc import Iterable, Sequence

from tagkin.annotator.suggestions import Kin, TagSuggestion
from tagkin.catalogue import Catalogue

OFFERED = {
    "a.jpg": {"holiday": 0.95, "dog": 0.3},
    "b.jpg": {"holiday": 0.7, "sea": 0.9},
    "2024/c.jpg": {"beach": 0.55},
    "2024/d.jpg": {"beach": 0.92, "sea": 0.6, "dog": 0.2},
}


def content(catalogue: Catalogue, path: str) -> int:
    return catalogue.database.value("SELECT content FROM photographs WHERE path = ?", (path,))


def new_suggestion(
    tag: str,
    confidence: float,
    kin: Iterable[tuple[int, float]] = (),
    name_share: float = 0.0,
    readout_share: float = 0.0,
) -> TagSuggestion:
    """A suggestion whose kin are named by the numbers of their contents."""
    named = tuple(Kin(str(content), share) for content, share in kin)
    return TagSuggestion(tag, confidence, named, name_share, readout_share)


def store(
    catalogue: Catalogue, run: int, each: Sequence[tuple[int, Sequence[TagSuggestion]]]
) -> None:
    """Store suggestions as a run's, with kin as in `new_suggestion`."""
    numbers = catalogue.database.column("SELECT id FROM contents")
    catalogue.suggestions.replace(run, each, {str(number): number for number in numbers})


def offer(catalogue: Catalogue, offered: dict[str, dict[str, float]] | None = None) -> int:
    """Suggest tags, with a.jpg and b.jpg as kin; the run."""
    kin = [(content(catalogue, "a.jpg"), 0.45), (content(catalogue, "b.jpg"), 0.15)]
    with catalogue.database.run("suggest", model="f" * 64) as run:
        each = [
            (
                content(catalogue, path),
                [new_suggestion(t, p, kin, 0.1, 0.3) for t, p in tags.items()],
            )
            for path, tags in (offered or OFFERED).items()
        ]
        store(catalogue, run.id, each)
    return run.id


def open_suggestions(catalogue: Catalogue) -> dict[str, dict[str, float]]:
    by_path: dict[str, dict[str, float]] = {}
    for path, tag, confidence in catalogue.database.rows(
        "SELECT p.path, t.name, s.confidence FROM suggestions s JOIN tags t ON t.id = s.tag "
        "JOIN photographs p ON p.content = s.content AND p.gone IS NULL ORDER BY p.path, t.name"
    ):
        by_path.setdefault(path, {})[tag] = confidence
    return by_path


def decisions(catalogue: Catalogue) -> dict[tuple[str, str], int]:
    rows = catalogue.database.rows(
        "SELECT p.path, t.name, d.verdict FROM decisions d JOIN tags t ON t.id = d.tag "
        "JOIN photographs p ON p.content = d.content WHERE d.holds AND d.verdict AND p.gone IS NULL"
    )
    return {(path, tag): verdict for path, tag, verdict in rows}
