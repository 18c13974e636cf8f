"""How much work a review is: actions per right tag, until most tags are there.

    python -m experiments review                # 7 CPU minutes

A person who knows the expert labels of 3,000 COCO photographs reviews suggestions; a tenth of the
photographs is tagged at the start. Draws are of COCO's test images, and nothing was chosen on them:
pages, weights and regularization were chosen on draws of its training images. Shares are of the
tags that are missing at the start. `experiments.persons` says what an action is.

- typing: every tag by its name, completed as soon as it is the only one, and a key per photograph;
- list: per photograph a list of suggestions, cut where it pays most, those worth most first;
- grid: pages of 60 photographs of one tag, in the order of what they were worth at the start;
- live: the pages that `LiveReview` asks for, which learns from every answer;
- fits: the same, opened anew after a full fit when 20, 40 and 60 % of the tags are there;
- known: pages like those of live, without learning, by a model that had learned from all other
  photographs' labels. Nobody has that: it says how much learning could bring.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.stats
from matplotlib.figure import Figure

from experiments.datasets import load_coco
from experiments.persons import clicked, keys_to_type, marked, overlooking
from experiments.problem import dataset_folder
from tagkin import FeatureAnnotator
from tagkin.server.asking import best_page
from tagkin.annotator.live import LiveImages, live_scores
from tagkin.catalogue.live_review import LiveReview

__all__ = ["Collection", "Played", "grid", "live", "measure_fits", "photograph_list", "run"]

N, TAGGED, PAGE, DRAWS, SEED = 3000, 300, 60, 5, 2000
SHARES = (0.3, 0.5, 0.8, 0.9)
LEAST = 0.003  # confidence of a suggestion
OVERLOOKED = 0.05
LOOKED_AT = (100, 200, 400)  # accepted tags that a person looks at again, the least sure first
FITS = (0.2, 0.4, 0.6)  # shares of the tags after which a full fit is made
ARMS = {
    "typing": "typing every tag",
    "list": "a list per photograph",
    "grid": "grids, fixed",
    "grid, runs": "grids, fixed, runs marked",
    "live, clicks": "grids that learn, no runs",
    "live": "grids that learn",
    "live, fits": "grids that learn, and full fits",
    "known, runs": "grids of a model that knew all",
}


class Collection(NamedTuple):
    """Photographs without tags, and what was learned from others for them."""

    tagged: tuple[np.ndarray, np.ndarray]
    """Features and labels of the others."""
    X: np.ndarray
    truth: np.ndarray
    """Labels (n×D) that the person knows."""
    P: np.ndarray
    """Confidences (n×D)."""
    annotator: FeatureAnnotator


class Played(NamedTuple):
    """Right tags and actions after each page, both cumulated."""

    right: np.ndarray
    actions: np.ndarray

    def at(self, share: float, n_all: int) -> float:
        """Actions per right tag when this share of all tags is there; NaN if it never is."""
        i = int(np.searchsorted(self.right, share * n_all))
        return float(self.actions[i] / self.right[i]) if i < len(self.right) else float("nan")


class Lived(NamedTuple):
    """A live review."""

    runs: Played
    clicks: Played
    """The same pages, had every exception been a click."""
    verdicts: np.ndarray
    """1 accepted, −1 rejected, 0 open (n×D)."""
    together: np.ndarray
    """What was accepted with the rest of a page, bool (n×D)."""
    review: LiveReview
    promised: float
    """How many tags the pages were said to have right, as a share of those that were."""


def played(pages: Iterator[tuple[int, int]]) -> Played:
    """From the right tags and the actions of each page."""
    right, actions = np.array(list(pages)).cumsum(axis=0).T
    return Played(right, actions)


# --- the ways to work --------------------------------------------------------------------


def photograph_list(c: Collection) -> Played:
    """Lists of tags per photograph, each cut where it pays most; what is left comes back later."""
    lists = []
    for i, p in enumerate(c.P):
        order = np.argsort(-p, kind="stable")
        while len(order):
            right = np.cumsum(p[order])
            n = np.arange(1, len(order) + 1)
            value = right / (1 + np.minimum(right, n - right))
            best = int(np.argmax(value))
            lists.append((-value[best], i, order[: best + 1]))
            order = order[best + 1 :]
    lists.sort(key=lambda one: one[:2])
    return played((int(c.truth[i, t].sum()), clicked(c.truth[i, t])) for _, i, t in lists)


def grid(c: Collection, runs: bool) -> Played:
    """Pages of one tag each, in the order of what they are worth by the first confidences."""
    pages = []
    for t in range(c.P.shape[1]):
        order = np.argsort(-c.P[:, t], kind="stable")
        for start in range(0, len(order), PAGE):
            rows = order[start : start + PAGE]
            right = c.P[rows, t].sum()
            pages.append((-right / (1 + min(right, len(rows) - right)), t, rows))
    pages.sort(key=lambda one: one[:2])
    return played(_answers(c, [(t, rows) for _, t, rows in pages], runs))


def known(c: Collection, P: np.ndarray) -> Played:
    """Pages as the live review cuts them, by other confidences P (n×D), without learning."""
    pages = []
    for t in range(P.shape[1]):
        order = np.argsort(-P[:, t], kind="stable")
        while len(order):
            page = best_page(P[order, t])
            assert page is not None
            pages.append((-page.value, t, order[page.shown]))
            order = order[len(page.shown) :]
    pages.sort(key=lambda one: one[:2])
    return played(_answers(c, [(t, rows) for _, t, rows in pages], True))


def _answers(
    c: Collection, pages: list[tuple[int, np.ndarray]], runs: bool
) -> Iterator[tuple[int, int]]:
    for t, rows in pages:
        truth = c.truth[rows, t]
        yield int(truth.sum()), marked(truth).n_actions if runs else clicked(truth)


def live(
    c: Collection, share: float, overlooked: float = 0.0, fits: tuple[float, ...] = ()
) -> Lived:
    """The pages that a `LiveReview` asks for, until a share of all tags is there.

    When each share of `fits` is there, a full fit is made, and the review is opened anew.
    """
    review = opened(c.annotator, c.X, np.where(c.P >= LEAST, c.P, 0))
    rng, verdicts = np.random.default_rng(0), np.zeros(c.truth.shape, dtype=np.int8)
    together, coming = np.zeros_like(c.truth), list(fits)
    pages, n_right, n_all, said_right = [], 0, c.truth.sum(), 0.0
    while n_right < share * n_all and (asked := review.questions(1)):
        rows, t = np.array(asked[0].contents), asked[0].tag
        truth = c.truth[rows, t]
        answer = marked(truth)
        said, n_actions = overlooking(truth, answer, overlooked, rng)
        pages.append((int(truth.sum()), n_actions, clicked(truth)))
        n_right += int(truth.sum())
        said_right += sum(asked[0].confidences)
        verdicts[rows, t] = np.where(said, 1, -1)
        together[rows, t] = said & ~(answer.singly & truth)
        if coming and n_right >= coming[0] * n_all:
            coming.pop(0)
            review = refitted(c, verdicts)
        else:
            review.learn((int(i), t, bool(yes)) for i, yes in zip(rows, said, strict=True))
    return Lived(
        played((right, n) for right, n, _ in pages),
        played((right, n) for right, _, n in pages),
        verdicts,
        together,
        review,
        said_right / max(n_right, 1),
    )


def opened(annotator: FeatureAnnotator, X: np.ndarray, P: np.ndarray) -> LiveReview:
    """A live review of suggestions with these confidences (n×D)."""
    scores = live_scores(LiveImages.of(annotator.model_, X), scipy.sparse.csc_array(P))
    return LiveReview(scores, range(len(X)), range(P.shape[1]))


def refitted(c: Collection, verdicts: np.ndarray) -> LiveReview:
    """A review after a full fit, as `tagkin.catalogue` and `LiveReview.open` make it.

    Photographs tagged at the start are complete; of the others, only what was decided is known. All
    decisions are learned from anew.
    """
    asked = np.flatnonzero((verdicts != 0).any(axis=1))
    n_tagged, d = len(c.tagged[0]), c.truth.shape[1]

    def labels(first: np.ndarray, rest: np.ndarray) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(np.vstack([first, rest[asked]]).astype(np.float32))

    nothing = np.zeros((n_tagged, d))
    n = n_tagged + len(asked)
    annotator = FeatureAnnotator().fit(
        np.vstack([c.tagged[0], c.X[asked]]),
        labels(c.tagged[1], verdicts > 0),
        groups=np.arange(n),
        rejected=labels(nothing, verdicts < 0),
        accepted=labels(nothing, verdicts > 0),
        complete=np.arange(n) < n_tagged,
    )
    number = np.full(len(c.X), -1)
    number[asked] = np.arange(n_tagged, n)
    P = np.where(verdicts != 0, annotator.predict_proba(c.X), 0)
    suggested = annotator.suggest(c.X, threshold=LEAST, known=number, n_kin=0)
    for row, suggestions in zip(P, suggested, strict=True):
        for suggestion in suggestions:
            row[suggestion.label] = suggestion.confidence
    review = opened(annotator, c.X, P)
    review.learn((int(i), int(t), verdicts[i, t] > 0) for i, t in np.argwhere(verdicts))
    return review


def typing(c: Collection, names: list[str]) -> Played:
    """Every tag by its name, photograph by photograph."""
    keys = keys_to_type(names)
    return played((int(row.sum()), 1 + int(keys[row].sum())) for row in c.truth)


# --- measuring ---------------------------------------------------------------------------


def drawn(X: np.ndarray, Y: np.ndarray) -> tuple[Collection, np.ndarray]:
    """What is learned from the tagged photographs, and confidences by all others' labels."""
    labels = scipy.sparse.csr_array(Y.astype(np.float32))
    alone = np.arange(len(X))
    annotator = FeatureAnnotator()
    annotator.fit(X[:TAGGED], labels[:TAGGED], groups=alone[:TAGGED])
    every = FeatureAnnotator().fit(X, labels, groups=alone).held_out_.toarray()
    rest = X[TAGGED:]
    tagged = X[:TAGGED], Y[:TAGGED]
    c = Collection(tagged, rest, Y[TAGGED:], annotator.predict_proba(rest), annotator)
    return c, every[TAGGED:]


def list_doubtful(c: Collection, lived: Lived) -> list[int]:
    """How many wrong tags are among the first n that the doubtful page shows, of LOOKED_AT.

    It shows what was accepted with the rest of a page, the least sure first.
    """
    every = lived.review.list_doubtful(c.truth.size)
    wrong = [not c.truth[i, t] for i, t, _ in every if lived.together[i, t]]
    return [sum(wrong[:n]) for n in LOOKED_AT]


def measure_fits(share: float, number: int = 0) -> np.ndarray:
    """Measure reviews without and with full fits until a share of the tags is there, (2, 2).

    Actions per right tag, and how many tags were said to be right as a share of those that were.
    """
    X, Y = draw_photographs(number)
    labels = scipy.sparse.csr_array(Y[:TAGGED].astype(np.float32))
    annotator = FeatureAnnotator()
    annotator.fit(X[:TAGGED], labels, groups=np.arange(TAGGED))
    P = annotator.predict_proba(X[TAGGED:])
    c = Collection((X[:TAGGED], Y[:TAGGED]), X[TAGGED:], Y[TAGGED:], P, annotator)
    ways = [live(c, share, fits=fits) for fits in ((), FITS)]
    return np.array([[way.runs.at(share, int(c.truth.sum())), way.promised] for way in ways])


def draw_photographs(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw photographs of COCO that nothing was chosen on: features and labels."""
    data = load_coco(dataset_folder("coco"))
    assert data.features is not None
    rng = np.random.default_rng(SEED + number)
    rows = rng.choice(np.asarray(data.test), N, replace=False)
    return data.features[rows], scipy.sparse.csr_array(data.labels)[rows].toarray() > 0


def run(target: Path) -> None:
    """Measure, print, and write review.csv, review-overlooked.csv and review.svg."""
    names = list(load_coco(dataset_folder("coco")).label_names)
    every: list[dict[str, Played]] = []
    totals, overlooked = [], []
    for draw in range(DRAWS):
        c, P = drawn(*draw_photographs(draw))
        careful = live(c, max(SHARES))
        ways = {
            "typing": typing(c, names),
            "list": photograph_list(c),
            "grid": grid(c, runs=False),
            "grid, runs": grid(c, runs=True),
            "live, clicks": careful.clicks,
            "live": careful.runs,
            "live, fits": live(c, max(SHARES), fits=FITS).runs,
            "known, runs": known(c, P),
        }
        every.append(ways)
        totals.append(int(c.truth.sum()))
        hasty = live(c, 0.8, OVERLOOKED)
        accepted = hasty.verdicts > 0
        counts = accepted, hasty.together, accepted & ~c.truth
        overlooked.append([draw, *(int(one.sum()) for one in counts), *list_doubtful(c, hasty)])
        for name, way in ways.items():
            print(draw, name, *(f"{way.at(s, totals[-1]):.3f}" for s in SHARES), flush=True)
        print(draw, "overlooking", *overlooked[-1][1:], flush=True)
        _write(target / "review.csv", *_table(every, totals))
        header = ["draw", "accepted", "with others", "wrong"]
        header += [f"among the first {n}" for n in LOOKED_AT]
        _write(target / "review-overlooked.csv", header, overlooked)
        _figure(every, totals).savefig(target / "review.svg", metadata={"Date": None})


def _table(every: list[dict[str, Played]], totals: list[int]) -> tuple[list[str], list[list[str]]]:
    """Means over draws with 95 % intervals (t), and the ratio to the fixed grid and the list."""
    header = ["way"] + [f"{s:.0%}" for s in SHARES] + [f"± at {s:.0%}" for s in SHARES]
    rows = []
    for name, title in ARMS.items():
        values = np.array(
            [[ways[name].at(s, n) for s in SHARES] for ways, n in zip(every, totals, strict=True)]
        )
        half = np.full(len(SHARES), np.nan)
        if len(values) > 1:
            t = scipy.stats.t.ppf(0.975, len(values) - 1)
            half = t * values.std(axis=0, ddof=1) / np.sqrt(len(values))
        cells = [f"{v:.3f}" for v in values.mean(axis=0)] + [f"{v:.3f}" for v in half]
        rows.append([title, *cells])
    return header, rows


def _write(path: Path, header: list[str], rows: list[Any]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _figure(every: list[dict[str, Played]], totals: list[int]) -> Figure:
    """Actions per right tag against the share of tags that are there, means over draws."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    shares = np.linspace(0.05, 0.9, 86)
    colors = (
        "#BBBBBB",
        "#AA3377",
        "#CCBB44",
        "#EE6677",
        "#66CCEE",
        "#4477AA",
        "#228833",
        "#222222",
    )
    styles = ("-", "-", "--", "-", "--", "-", "--", ":")
    for (name, title), color, style in zip(ARMS.items(), colors, styles, strict=True):
        pairs = zip(every, totals, strict=True)
        values = np.mean([[ways[name].at(s, n) for s in shares] for ways, n in pairs], axis=0)
        axes.plot(100 * shares, values, style, color=color, label=title)
    axes.set(xlabel="% of the missing tags that are there", ylabel="actions per right tag")
    axes.set(xlim=(0, 90), ylim=(0, 1.6))
    axes.legend(fontsize=8, ncol=2)
    return figure
