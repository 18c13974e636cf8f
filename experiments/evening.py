"""An evening of answers, with the page's own code for the next question and its percentages.

Some photographs of a collection are tagged, and the others not at all. A model learns from the
tagged ones and suggests tags for the others. A person who knows all tags answers one page after the
other. Answers correct confidences (`AnswerCurve`), the page with most right tags
per action is asked next (`best_page`), and a new model is fitted when that pays (`fit_pays`); it
keeps open suggestions (`offered`), as `tagkin review` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from experiments.persons import marked
from tagkin import FeatureAnnotator
from tagkin.catalogue.collection_model import fit_pays
from tagkin.server.asking import AnswerCurve, best_page, expect_right, list_bands

__all__ = ["Collection", "Evening", "Opened", "Refit", "Way", "open_collection", "play"]

LEAST, MOST = 0.05, 20  # confidence and number of suggestions of a photograph
LIKELY = 0.5
TEN_MINUTES = 600
PER_PAGE, PER_ACTION, PER_TILE = 2.0, 1.0, 0.2  # seconds
BETWEEN_FORECASTS = 10  # pages

Band = tuple[int, float, float]
"""A band of confidence, answers in it, and their surplus; see `AnswerCurve`."""


class Collection(NamedTuple):
    """N photographs, the first of which are tagged, and new photographs to test on."""

    X: np.ndarray
    truth: np.ndarray
    """Right tags of all photographs (N×D), of which a tagged one has at least one."""
    n_tagged: int
    new_features: np.ndarray
    new_truth: np.ndarray
    n_never: int = 0
    """Right tags of untagged photographs that no tagged one has."""

    @property
    def n_missing(self) -> int:
        """Tags that a person can reach."""
        return int(self.truth[self.n_tagged :].sum())


class Way(NamedTuple):
    """What the page does with answers."""

    corrects: bool = True
    fits: bool = True


class Refit(NamedTuple):
    """Open suggestions before and after a fit."""

    n_before: int
    right_before: int
    n_after: int
    right_after: int
    right_kept: int
    """Right suggestions that were open before and are open after."""


@dataclass
class Evening:
    """Pages and what they brought, in their order."""

    right: list[int] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    unlikely: list[bool] = field(default_factory=list)
    """Whether all photographs of a page are below its line."""
    tags: list[int] = field(default_factory=list)
    tiles: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    """Confidences as shown, and which are right, both (n,)."""
    forecasts: list[tuple[int, int, float]] = field(default_factory=list)
    """Pages before a forecast, answers of the next ten minutes, and right tags among them."""
    refits: list[Refit] = field(default_factory=list)
    likely_new: list[tuple[int, int]] = field(default_factory=list)
    """Pages before a fit, and right suggestions at 50 % on new photographs after it."""


class Opened(NamedTuple):
    """A collection before the first answer."""

    collection: Collection
    confidences: np.ndarray
    """Of the suggestions (N×D), 0 if not suggested."""
    n_likely_new: int


def open_collection(c: Collection) -> Opened:
    """Learn from the tagged photographs, and suggest tags for the others."""
    verdicts = np.zeros(c.truth.shape, dtype=np.int8)
    learned = _learn(c, verdicts)
    return Opened(c, _suggest(learned, c, verdicts, None), _count_likely(learned, c))


def play(opened: Opened, n_pages: int, way: Way = Way()) -> Evening:  # noqa: B008 (it is frozen)
    """Answer pages until none is left, or n_pages are answered."""
    c, stored, n_likely = opened
    evening = Evening(likely_new=[(0, n_likely)])
    verdicts = np.zeros(c.truth.shape, dtype=np.int8)
    own: dict[int, list[Band]] = {}  # answers since the last fit, by tag
    every: list[Band] = []  # answers to all tags, before all fits too
    n_known, n_new = float(c.truth[: c.n_tagged].sum()), 0
    seconds: list[float] = []
    for number in range(n_pages):
        start = AnswerCurve.start(every if way.corrects else ())
        queues = _queue(stored, verdicts, start, own)
        pages = [(page, *queue) for queue in queues if (page := best_page(queue[2])) is not None]
        if not pages:
            break
        if seconds and number % BETWEEN_FORECASTS == 0:
            n_soon = round(TEN_MINUTES / float(np.median(seconds)))
            said = expect_right([p for *_, p in queues], n_soon)
            evening.forecasts.append((number, n_soon, said))
        page, tag, rows, p = max(pages, key=lambda one: one[0].value)
        shown, rows = p[page.shown], rows[page.shown]
        right = c.truth[rows, tag]
        n_actions = marked(right, shown >= LIKELY)
        evening.tags.append(tag)
        evening.right.append(int(right.sum()))
        evening.actions.append(n_actions)
        evening.unlikely.append(bool((shown < LIKELY).all()))
        evening.tiles.append((shown, right))
        taken = PER_PAGE + PER_ACTION * n_actions + PER_TILE * len(rows)
        seconds += [taken / len(rows)] * len(rows)
        verdicts[rows, tag] = np.where(right, 1, -1)
        if way.corrects:
            bands = list_bands(stored[rows, tag], right)
            every += bands
            own[tag] = [*own.get(tag, ()), *bands]
        n_new, n_known = n_new + len(rows), n_known + len(rows)
        if way.fits and fit_pays(n_new, n_known):
            learned = _learn(c, verdicts)
            was_open = (stored > 0) & (verdicts == 0)
            stored = _suggest(learned, c, verdicts, was_open)
            evening.refits.append(_compare(was_open, stored > 0, c.truth))
            evening.likely_new.append((number + 1, _count_likely(learned, c)))
            n_new, own = 0, {}
    return evening


def _queue(
    stored: np.ndarray, verdicts: np.ndarray, start: AnswerCurve, own: dict[int, list[Band]]
) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return each tag with its open photographs and their confidences, most confident first."""
    queues = []
    for tag in range(stored.shape[1]):
        rows = np.flatnonzero((stored[:, tag] > 0) & (verdicts[:, tag] == 0))
        if len(rows):
            rows = rows[np.argsort(-stored[rows, tag], kind="stable")]
            p = stored[rows, tag]
            queues.append((tag, rows, start.add(own.get(tag, ())).correct(p)))
    return queues


def _compare(before: np.ndarray, after: np.ndarray, truth: np.ndarray) -> Refit:
    counts = (before, before & truth, after, after & truth, before & after & truth)
    return Refit(*(int(mask.sum()) for mask in counts))


# --- learning and suggesting ----------------------------------------------------------------


class _Learned(NamedTuple):
    """A model, and the number (N,) of each photograph among those it learned from, or −1."""

    annotator: FeatureAnnotator
    known: np.ndarray


def _learn(c: Collection, verdicts: np.ndarray) -> _Learned:
    """Fit a model as `tagkin.catalogue` does: of an untagged photograph, only answers are known."""
    is_tagged = np.arange(len(c.X)) < c.n_tagged
    rows = np.flatnonzero(is_tagged | (verdicts != 0).any(axis=1))
    labels = np.where(is_tagged[:, None], c.truth, verdicts > 0)
    annotator = FeatureAnnotator().fit(
        c.X[rows],
        _sparse(labels[rows]),
        groups=np.arange(len(rows)),
        rejected=_sparse(verdicts[rows] < 0),
        accepted=_sparse(verdicts[rows] > 0),
        complete=is_tagged[rows],
    )
    known = np.full(len(c.X), -1)
    known[rows] = np.arange(len(rows))
    return _Learned(annotator, known)


def _suggest(
    learned: _Learned, c: Collection, verdicts: np.ndarray, offered: np.ndarray | None
) -> np.ndarray:
    """Return the confidences (N×D) of open suggestions for untagged photographs."""
    rest = slice(c.n_tagged, None)
    options: dict[str, Any] = {} if offered is None else {"offered": _sparse(offered[rest])}
    lists = learned.annotator.suggest(
        c.X[rest],
        n=MOST,
        threshold=LEAST,
        n_kin=0,
        known=learned.known[rest],
        present=_sparse(verdicts[rest] > 0),
        rejected=_sparse(verdicts[rest] < 0),
        complete=np.zeros(len(c.X) - c.n_tagged, dtype=bool),
        **options,
    )
    P = np.zeros(c.truth.shape)
    for row, suggestions in enumerate(lists, start=c.n_tagged):
        for suggestion in suggestions:
            P[row, suggestion.label] = suggestion.confidence
    return P


def _count_likely(learned: _Learned, c: Collection) -> int:
    """Count right suggestions at 50 % on new photographs."""
    P = learned.annotator.predict_proba(c.new_features)
    return int(((P >= LIKELY) & c.new_truth).sum())


def _sparse(values: np.ndarray) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(values.astype(np.float32))
