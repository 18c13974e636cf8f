"""An evening of answers, with the page's own code for the next question and its percentages.

Some photographs of a collection are tagged, and the others not at all. A model learns from the
tagged ones and suggests tags for all of them. A person who knows all tags answers one page after
the other. Answers correct confidences (`Corrections`), the page with most right tags per action is
asked next (`best_page`), and a new model is fitted when that pays (`fit_pays`); it keeps open
suggestions (`offered`), as `tagkin review` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from experiments.evening_model import Collection, Suggested, count_likely, learn, suggest
from experiments.persons import laid_out, marked
from tagkin.catalogue.collection_model import fit_pays
from tagkin.server.answers import LIKELY
from tagkin.server.asking import N_CANDIDATES, PAGE, Answers, Page, best_page, expect_right
from tagkin.server.correcting import AskedSuggestions, Corrections
from tagkin.server.near_answers import AnswersInTime, TaggedTimes

__all__ = ["Evening", "Opened", "Refit", "Tiles", "Way", "open_collection", "play"]

TEN_MINUTES = 600
PER_PAGE, PER_ACTION, PER_TILE = 2.0, 1.0, 0.2  # seconds
BETWEEN_FORECASTS = 10  # pages


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
    answers = _Answers(c, way)
    n_known, n_new = float(c.truth[: c.n_tagged].sum()), 0
    seconds: list[float] = []
    is_told = False  # that the questions which are left pay little
    for number in range(n_pages):
        queues = _queue(suggested.confidences, verdicts, answers)
        chosen = _choose_page(queues, answers)
        if chosen is None:
            break
        if seconds and number % BETWEEN_FORECASTS == 0:
            n_soon = round(TEN_MINUTES / float(np.median(seconds)))
            said = expect_right([p for *_, p in queues], n_soon)
            evening.forecasts.append((number, n_soon, said))
        page, tag, rows, p = chosen
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
        answers.add(tag, rows, suggested.confidences[rows, tag], right)
        n_new, n_known = n_new + len(rows), n_known + len(rows)
        if way.fits and fit_pays(n_new, n_known):
            learned = learn(c, verdicts)
            was_open = (suggested.confidences > 0) & (verdicts == 0)
            suggested = suggest(learned, c, verdicts, was_open)
            evening.refits.append(_compare(was_open, suggested.confidences > 0, c.truth))
            evening.likely_new.append((number + 1, count_likely(learned, c)))
            answers.renew(verdicts)
            n_new = 0
    return evening


def count_actions(
    c: Collection, rows: np.ndarray, shown: np.ndarray, right: np.ndarray
) -> tuple[int, int]:
    """Return the actions for a page, and how many they are without headings."""
    order, headings = laid_out(shown >= LIKELY, c.events[rows], c.times[rows])
    wanted = (right != (shown >= LIKELY))[order]
    return marked(wanted, headings), marked(wanted)


class _Answers:
    """The answers of an evening, and what they correct."""

    def __init__(self, c: Collection, way: Way):
        self._c, self._way = c, way
        self._every: list[Answers] = []
        self.renew(np.zeros(c.truth.shape, np.int8))

    def renew(self, verdicts: np.ndarray) -> None:
        """Begin to correct another model."""
        c = self._c
        self._n_before = len(self._every)
        self._has = np.where(c.is_tagged[:, None], c.truth, verdicts > 0)
        known = np.where(self._has.any(axis=1), c.times, np.nan)
        self._tagged = TaggedTimes.of(known)
        self._corrections = self._learn() if self._every else Corrections()

    def add(self, tag: int, rows: np.ndarray, confidences: np.ndarray, right: np.ndarray) -> None:
        """Learn from the answers of a page."""
        tags = np.full(len(rows), tag)
        self._every.append(Answers(tags, rows, confidences, right.astype(float)))
        self._corrections = self._learn() if self._way.corrects else Corrections()

    def _learn(self) -> Corrections:
        last, since = (_join(part) for part in (self._every, self._every[self._n_before :]))
        is_tagged = self._c.is_tagged
        return Corrections.learn(
            last.take(~is_tagged[last.contents]),
            since.take(~is_tagged[since.contents]),
            since.take(is_tagged[since.contents]),
        )

    def correct(self, tag: int, rows: np.ndarray, confidences: np.ndarray) -> np.ndarray:
        """Return what the page shows for open suggestions of a tag."""
        c = self._c
        asked = AskedSuggestions(confidences, c.is_tagged[rows], c.times[rows])
        return self._corrections.correct(tag, asked, self._in_time(tag))

    def is_asked(self, rows: np.ndarray, confidences: np.ndarray) -> np.ndarray:
        """Return which suggestions are worth a question."""
        return self._corrections.forgetting.is_asked(confidences, self._c.is_tagged[rows])

    def _in_time(self, tag: int) -> AnswersInTime | None:
        """Return the answers to a tag since the last fit that have a time."""
        own = [one for one in self._every[self._n_before :] if one.tags[0] == tag]
        if not (own and self._way.corrects and self._way.knows_moments):
            return None
        answers = _join(own)
        times = self._c.times[answers.contents]
        if np.isnan(times).all():
            return None
        strength = self._tagged.strength(self._has[:, tag])
        return AnswersInTime.of(times, answers.accepted, strength)


def _join(answers: list[Answers]) -> Answers:
    """Return answers together."""
    if not answers:
        nothing = np.zeros(0)
        return Answers(nothing.astype(int), nothing.astype(int), nothing, nothing)
    return Answers(*map(np.concatenate, zip(*answers, strict=True)))


def _queue(
    confidences: np.ndarray, verdicts: np.ndarray, answers: _Answers
) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return the likeliest tags with their open photographs, most confident first."""
    queues = []
    for tag in range(confidences.shape[1]):
        rows = np.flatnonzero((confidences[:, tag] > 0) & (verdicts[:, tag] == 0))
        if len(rows):
            rows = rows[np.argsort(-confidences[rows, tag], kind="stable")]
            p = answers.correct(tag, rows, confidences[rows, tag])
            order = np.argsort(-p, kind="stable")
            queues.append((tag, rows[order], p[order]))
    queues.sort(key=lambda queue: -queue[2].sum())
    return queues[:N_CANDIDATES]


def _choose_page(
    queues: list[tuple[int, np.ndarray, np.ndarray]], answers: _Answers
) -> tuple[Page, int, np.ndarray, np.ndarray] | None:
    """Return the best page, its tag, and that tag's photographs and confidences."""
    for choose in (answers.is_asked, lambda rows, p: np.ones(len(p), bool)):
        pages = []
        for tag, rows, p in queues:
            asked = choose(rows[:PAGE], p[:PAGE])
            page = best_page(p[:PAGE][asked])
            if page is not None:
                pages.append((page, tag, rows[:PAGE][asked], p[:PAGE][asked]))
        if pages:
            return max(pages, key=lambda one: one[0].value)
    return None


def _compare(before: np.ndarray, after: np.ndarray, truth: np.ndarray) -> Refit:
    counts = (before, before & truth, after, after & truth, before & after & truth)
    return Refit(*(int(mask.sum()) for mask in counts))
