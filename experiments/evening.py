"""An evening of answers, with the page's own code for the next question and its percentages.

Some photographs of a collection are tagged, and the others not at all. A model learns from the
tagged ones and suggests tags for all of them. A person who knows all tags answers one page after
the other. Answers correct confidences (`AnswerCurve`, then `AnswersInTime` if times are known), the
page with most right tags per action is asked next (`best_page`), and a new model is fitted when
that pays (`fit_pays`); it keeps open suggestions (`offered`), as `tagkin review` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from experiments.evening_model import Collection, Suggested, count_likely, learn, suggest
from experiments.persons import laid_out, marked
from tagkin.catalogue.collection_model import fit_pays
from tagkin.server.answers import LIKELY
from tagkin.server.asking import (
    N_CANDIDATES,
    PAGE,
    AnswerCurve,
    best_page,
    expect_right,
    list_bands,
)
from tagkin.server.near_answers import AnswersInTime, TaggedTimes

__all__ = ["Evening", "Opened", "Refit", "Tiles", "Way", "open_collection", "play"]

TEN_MINUTES = 600
PER_PAGE, PER_ACTION, PER_TILE = 2.0, 1.0, 0.2  # seconds
BETWEEN_FORECASTS = 10  # pages

Band = tuple[int, float, float]
"""A band of confidence, answers in it, and their surplus; see `AnswerCurve`."""


class Way(NamedTuple):
    """What the page does with answers."""

    corrects: bool = True
    fits: bool = True
    knows_moments: bool = True
    """Whether answers count at once for photographs of their moment."""


class Refit(NamedTuple):
    """Open suggestions before and after a fit."""

    n_before: int
    right_before: int
    n_after: int
    right_after: int
    right_kept: int
    """Right suggestions that were open before and are open after."""


class Tiles(NamedTuple):
    """The n tiles of a page."""

    shown: np.ndarray
    """Confidences, shape (n,)."""
    right: np.ndarray
    """Shape (n,)."""
    is_tagged: np.ndarray
    """Whether a person had tagged the photograph completely, shape (n,)."""
    inputs: np.ndarray
    """What contributes most to each suggestion, shape (n,); see `main_input`."""


@dataclass
class Evening:
    """Pages and what they brought, in their order."""

    right: list[int] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    clicks: list[int] = field(default_factory=list)
    """Actions without a click on a heading."""
    unlikely: list[bool] = field(default_factory=list)
    """Whether all photographs of a page are below its line."""
    tags: list[int] = field(default_factory=list)
    tiles: list[Tiles] = field(default_factory=list)
    forecasts: list[tuple[int, int, float]] = field(default_factory=list)
    """Pages before a forecast, answers of the next ten minutes, and right tags among them."""
    refits: list[Refit] = field(default_factory=list)
    likely_new: list[tuple[int, int]] = field(default_factory=list)
    """Pages before a fit, and right suggestions at 50 % on new photographs after it."""


class Opened(NamedTuple):
    """A collection before the first answer."""

    collection: Collection
    suggested: Suggested
    n_likely_new: int


def open_collection(c: Collection) -> Opened:
    """Learn from the tagged photographs, and suggest tags."""
    verdicts = np.zeros(c.truth.shape, dtype=np.int8)
    learned = learn(c, verdicts)
    return Opened(c, suggest(learned, c, verdicts, None), count_likely(learned, c))


def play(opened: Opened, n_pages: int, way: Way = Way()) -> Evening:  # noqa: B008 (it is frozen)
    """Answer pages until none is left, or n_pages are answered."""
    c, suggested, n_likely = opened
    evening = Evening(likely_new=[(0, n_likely)])
    verdicts = np.zeros(c.truth.shape, dtype=np.int8)
    since = _Since.start(c, way, ())
    n_known, n_new = float(c.truth[: c.n_tagged].sum()), 0
    seconds: list[float] = []
    is_told = False  # that the questions which are left pay little
    for number in range(n_pages):
        queues = _queue(suggested.confidences, verdicts, since)
        pages = [(page, *q) for q in queues if (page := best_page(q[2][:PAGE])) is not None]
        if not pages:
            break
        if seconds and number % BETWEEN_FORECASTS == 0:
            n_soon = round(TEN_MINUTES / float(np.median(seconds)))
            said = expect_right([p for *_, p in queues], n_soon)
            evening.forecasts.append((number, n_soon, said))
        page, tag, rows, p = max(pages, key=lambda one: one[0].value)
        shown, rows = p[page.shown], rows[page.shown]
        right = c.truth[rows, tag]
        n_actions, n_clicks = count_actions(c, rows, shown, right)
        is_first_little, is_told = not (page.pays or is_told), is_told or not page.pays
        n_actions, n_clicks = n_actions + is_first_little, n_clicks + is_first_little
        evening.tags.append(tag)
        evening.right.append(int(right.sum()))
        evening.actions.append(n_actions)
        evening.clicks.append(n_clicks)
        evening.unlikely.append(bool((shown < LIKELY).all()))
        tiles = Tiles(shown, right, c.is_tagged[rows], suggested.inputs[rows, tag])
        evening.tiles.append(tiles)
        taken = PER_PAGE + PER_ACTION * n_actions + PER_TILE * len(rows)
        seconds += [taken / len(rows)] * len(rows)
        verdicts[rows, tag] = np.where(right, 1, -1)
        since.learn(tag, rows, suggested.confidences[rows, tag], right)
        n_new, n_known = n_new + len(rows), n_known + len(rows)
        if way.fits and fit_pays(n_new, n_known):
            learned = learn(c, verdicts)
            was_open = (suggested.confidences > 0) & (verdicts == 0)
            suggested = suggest(learned, c, verdicts, was_open)
            evening.refits.append(_compare(was_open, suggested.confidences > 0, c.truth))
            evening.likely_new.append((number + 1, count_likely(learned, c)))
            n_new, since = 0, _Since.start(c, way, since.every, verdicts)
    return evening


def count_actions(
    c: Collection, rows: np.ndarray, shown: np.ndarray, right: np.ndarray
) -> tuple[int, int]:
    """Return the actions for a page, and how many they are without headings."""
    order, headings = laid_out(shown >= LIKELY, c.events[rows], c.times[rows])
    wanted = (right != (shown >= LIKELY))[order]
    return marked(wanted, headings), marked(wanted)


@dataclass
class _Since:
    """The answers since the last fit, and what they correct."""

    way: Way
    times: np.ndarray
    tagged: TaggedTimes
    has: np.ndarray
    """Which photographs have which tag, shape (N, D)."""
    every: list[Band]
    """Answers to all tags, before all fits too."""
    own: dict[int, list[Band]] = field(default_factory=dict)
    """Answers by tag."""
    answers: dict[int, list[tuple[np.ndarray, np.ndarray]]] = field(default_factory=dict)
    """Photographs and answers, by tag."""

    @classmethod
    def start(
        cls, c: Collection, way: Way, every: Any, verdicts: np.ndarray | None = None
    ) -> _Since:
        has = np.where(c.is_tagged[:, None], c.truth, False)
        if verdicts is not None:
            has |= verdicts > 0
        known = np.where(has.any(axis=1), c.times, np.nan)
        return cls(way, c.times, TaggedTimes.of(known), has, list(every))

    def learn(self, tag: int, rows: np.ndarray, confidences: np.ndarray, right: np.ndarray) -> None:
        bands = list_bands(confidences, right)
        self.every += bands
        self.own.setdefault(tag, []).extend(bands)
        self.answers.setdefault(tag, []).append((rows, right))

    def start_curve(self) -> AnswerCurve:
        return AnswerCurve.start(self.every if self.way.corrects else ())

    def correct(
        self, start: AnswerCurve, tag: int, rows: np.ndarray, confidences: np.ndarray
    ) -> np.ndarray:
        """Return what the page shows for open suggestions of a tag."""
        if not self.way.corrects:
            return confidences
        p = start.add(self.own.get(tag, ())).correct(confidences)
        if not (self.way.knows_moments and tag in self.answers):
            return p
        answered, right = map(np.concatenate, zip(*self.answers[tag], strict=True))
        times = self.times[answered]
        if np.isnan(times).all():
            return p
        strength = self.tagged.strength(self.has[:, tag])
        return AnswersInTime.of(times, right, strength).correct(self.times[rows], p)


def _queue(
    confidences: np.ndarray, verdicts: np.ndarray, since: _Since
) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return the likeliest tags with their open photographs, most confident first."""
    queues, start = [], since.start_curve()
    for tag in range(confidences.shape[1]):
        rows = np.flatnonzero((confidences[:, tag] > 0) & (verdicts[:, tag] == 0))
        if len(rows):
            rows = rows[np.argsort(-confidences[rows, tag], kind="stable")]
            p = since.correct(start, tag, rows, confidences[rows, tag])
            order = np.argsort(-p, kind="stable")
            queues.append((tag, rows[order], p[order]))
    queues.sort(key=lambda queue: -queue[2].sum())
    return queues[:N_CANDIDATES]


def _compare(before: np.ndarray, after: np.ndarray, truth: np.ndarray) -> Refit:
    counts = (before, before & truth, after, after & truth, before & after & truth)
    return Refit(*(int(mask.sum()) for mask in counts))
