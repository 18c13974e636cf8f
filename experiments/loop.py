"""Do answers make suggestions better? Persons answer, a model learns, and it suggests again.

    python -m experiments loop                  # everything, about half an hour of CPU time
    python -m experiments loop --quick          # small collections, some minutes

Some photographs of a collection are tagged completely, and the others not at all. In each round a
person answers suggestions for the others (`experiments.loop_persons`); then a model is fitted as
`tagkin train` does, and suggests tags for them. Every way to learn has rounds of its own:

- alone: from the complete photographs only;
- answers: what tagkin does; answers on other photographs count, unanswered tags are unknown;
- as complete: what tagkin did before; a photograph with an accepted tag counts as complete.

A model of all true tags tells how much there is to learn. Shown draws of COCO are of its test
images; those of Flickr8k and of noisy tags are of one half of the training images, with test images
as new ones. Anything that was chosen was chosen on other images (DEVELOPMENT). Draws of the 1,200
photographs differ by their seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from experiments.bootstrap import resample_weights, weighted_map
from experiments.datasets import load_coco, load_flickr8k, load_photos
from experiments.loop_persons import PERSONS, Answers
from experiments.problem import dataset_folder, with_features
from experiments.store import Arrays, Store
from tagkin import FeatureAnnotator
from tagkin.evaluation import mean_average_precision

__all__ = [
    "ASKED",
    "DEVELOPMENT",
    "MAIN_SHARE",
    "PENDING",
    "QUICK",
    "RESAMPLES",
    "REVIEWED",
    "SETS",
    "SHARES",
    "SHOWN",
    "Cell",
    "Collection",
    "Plan",
    "Start",
    "draw",
    "learn",
    "list_cells",
    "make_collection",
    "play",
    "rank_knowing_all",
    "run_cell",
]

SHARES = (0.2, 0.05, 0.5)
ASKED = (0.5, 0.8, 0.9)
PENDING = 0.5  # confidence of a pending suggestion
REVIEWED: dict[str, Any] = {"threshold": 0.05, "n": 20}  # suggestions of a review
ROUNDS = {"bulk": 5, "pages": 3, "photographs": 3, "hasty": 3}
WAYS = ("alone", "answers", "as complete")
MAIN_SHARE, MAIN_PERSONS = 0.2, ("bulk", "pages")
BEFORE = ("coco", "photos")  # sets on which what tagkin did before is played
RESAMPLES = 200


class Set(NamedTuple):
    """Where photographs are drawn from, and how much is answered in a round."""

    title: str
    dataset: str
    n_photographs: int
    n_new: int
    n_pages: int
    """Pages in a round."""


SETS = {
    "coco": Set("COCO", "coco", 3000, 2000, 30),
    "flickr8k": Set("Flickr8k", "flickr8k", 2000, 1000, 40),
    "photos": Set("photographs", "photos", 1000, 200, 20),
    "tags": Set("COCO, noisy tags", "coco", 2000, 2000, 30),
}


class Plan(NamedTuple):
    """What is played, and on which draws."""

    kind: str
    """Folder of the stored results."""
    sets: dict[str, Set] = SETS
    shares: tuple[float, ...] = SHARES
    seed: int = 4000
    is_development: bool = False


SHOWN = Plan("rounds")
DEVELOPMENT = Plan("development", seed=5000, is_development=True)
QUICK = Plan(
    "quick",
    {name: s._replace(n_photographs=500, n_new=200, n_pages=10) for name, s in SETS.items()},
    (MAIN_SHARE,),
)


class Cell(NamedTuple):
    """What one simulation is about."""

    set: str
    share: float
    person: str
    way: str


class Collection(NamedTuple):
    """N photographs, the first of which are tagged completely, and new ones to test on."""

    X: np.ndarray
    tags: np.ndarray
    """Tags of the complete photographs (n×D), which may lack some."""
    truth: np.ndarray
    """Right tags of all photographs (N×D)."""
    new_features: np.ndarray
    new_truth: np.ndarray
    n_never: int = 0
    """Right tags of the other photographs that are on fewer than two complete ones."""

    @property
    def n_complete(self) -> int:
        """Number of complete photographs, n."""
        return len(self.tags)


# --- photographs --------------------------------------------------------------------------


@cache
def load(name: str, results: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, tags and right tags of all photographs of a set."""
    folder = dataset_folder(SETS[name].dataset)
    if name == "photos":
        data = with_features(load_photos(folder), folder, results / "features")
    else:
        data = (load_flickr8k if name == "flickr8k" else load_coco)(folder)
    assert data.features is not None
    truth = scipy.sparse.csr_array(data.labels).toarray() > 0
    if name != "tags":
        return data.features, truth, truth
    assert data.tags is not None
    common = [tag for tag in data.tag_names if tag in data.label_names]
    tags = scipy.sparse.csr_array(data.tags)[:, [data.tag_names.index(t) for t in common]]
    columns = [list(data.label_names).index(tag) for tag in common]
    return data.features, tags.toarray() > 0, truth[:, columns]


@cache
def list_rows(name: str, development: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return photographs to draw a collection from, and those to test on."""
    folder = dataset_folder(SETS[name].dataset)
    if name == "photos":
        rows = np.arange(1200)
        return rows, rows
    if name == "flickr8k":
        data = load_flickr8k(folder)
        halves = np.array_split(np.random.default_rng(5).permutation(data.train), 2)
        return (halves[0], halves[1]) if development else (halves[1], data.test)
    data = load_coco(folder)
    if name == "tags":  # all photographs with tags are training images
        assert data.tagged is not None
        shuffled = np.random.default_rng(DEVELOPMENT.seed).permutation(data.tagged)
        halves = np.array_split(shuffled, 2)
        others = np.setdiff1d(data.train, data.tagged)
        return (halves[0], others) if development else (halves[1], data.test)
    rows = data.train if development else data.test
    return rows, rows


def draw(plan: Plan, name: str, share: float, results: Path) -> Collection:
    """Draw a collection, a share of which is tagged completely."""
    X, tags, truth = load(name, results)
    of_set, rng = plan.sets[name], np.random.default_rng(plan.seed)
    pool, others = list_rows(name, plan.is_development)
    rows = rng.permutation(pool)[: of_set.n_photographs]
    new = rng.permutation(np.setdiff1d(others, rows))[: of_set.n_new]
    return make_collection(X, tags, truth, rows, new, share)


def make_collection(
    X: np.ndarray,
    tags: np.ndarray,
    truth: np.ndarray,
    rows: np.ndarray,
    new: np.ndarray,
    share: float,
) -> Collection:
    """Return a collection with the tags that can be learned: on two complete photographs."""
    n = round(share * len(rows))
    columns = tags[rows[:n]].sum(axis=0) >= 2
    rest = truth[rows[n:]]
    return Collection(
        X[rows],
        tags[rows[:n]][:, columns],
        truth[rows][:, columns],
        X[new],
        truth[new][:, columns],
        int(rest.sum() - rest[:, columns].sum()),
    )


# --- learning and suggesting ----------------------------------------------------------------


class Learned(NamedTuple):
    """A model, and the number (N,) of each photograph among those it learned from, or −1."""

    annotator: FeatureAnnotator
    known: np.ndarray


def learn(c: Collection, answers: Answers, way: str) -> Learned:
    """Fit a model as `tagkin.catalogue` does (answers), or in another of WAYS."""
    labels, is_complete = np.zeros_like(c.truth), np.arange(len(c.X)) < c.n_complete
    labels[is_complete] = c.tags
    rejected, accepted, learned = answers.rejected, answers.accepted, is_complete
    if way == "alone":
        rejected = accepted = np.zeros_like(labels)
    else:
        present = answers.present if way == "as complete" else accepted
        labels, learned = labels | present, is_complete | present.any(axis=1)
        if way == "as complete":
            is_complete = learned
        else:
            learned = learned | rejected.any(axis=1)
    rows = np.flatnonzero(learned)
    annotator = FeatureAnnotator().fit(
        c.X[rows],
        _sparse(labels[rows]),
        groups=np.arange(len(rows)),
        rejected=_sparse(rejected[rows]),
        accepted=_sparse(accepted[rows]),
        complete=is_complete[rows],
    )
    return Learned(annotator, np.where(learned, np.cumsum(learned) - 1, -1))


class Suggested(NamedTuple):
    """Suggestions for the photographs that are not complete."""

    P: np.ndarray
    """Confidences (N×D), 0 where nothing is suggested."""
    asked: np.ndarray
    """Suggestions at each precision of ASKED, bool (3, N, D)."""


def suggest(learned: Learned, c: Collection, answers: Answers, *, ask: bool) -> Suggested:
    """Suggest tags that nobody has answered, as for a review and at asked precisions.

    Without `ask`, nothing is asked.
    """
    rest = slice(c.n_complete, None)

    def confidences(**options: Any) -> np.ndarray:
        P = np.zeros(c.truth.shape)
        lists = learned.annotator.suggest(
            c.X[rest],
            n_kin=0,
            known=learned.known[rest],
            present=_sparse(answers.present[rest]),
            rejected=_sparse(answers.rejected[rest]),
            **options,
        )
        for row, suggestions in enumerate(lists, start=c.n_complete):
            for suggestion in suggestions:
                P[row, suggestion.label] = suggestion.confidence
        return P

    P = confidences(**REVIEWED)
    if not ask:
        return Suggested(P, np.zeros((len(ASKED), *P.shape), dtype=bool))
    return Suggested(P, np.stack([confidences(precision=p) > 0 for p in ASKED]))


def _sparse(values: np.ndarray) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(values.astype(np.float32))


# --- rounds ---------------------------------------------------------------------------------


class Start(NamedTuple):
    """A collection before the first answer, with a model of its complete photographs."""

    collection: Collection
    learned: Learned
    suggested: Suggested
    ranks: Arrays
    """Of the model, as `rank_new` returns them."""

    @classmethod
    def of(cls, c: Collection) -> Start:
        """Learn from the complete photographs alone."""
        nothing = Answers.none(c.truth.shape)
        learned = learn(c, nothing, "alone")
        suggested = suggest(learned, c, nothing, ask=True)
        return cls(c, learned, suggested, rank_new(learned.annotator, c))


def play(start: Start, person: str, way: str, n_rounds: int, work: int) -> Arrays:
    """Play rounds; return what was there before the first and after each, R + 1 times.

    Counts are of each photograph that is not complete. `work` is the number of pages or
    photographs that are answered in a round. Precisions are asked of tagkin's own way only.
    """
    c, learned, suggested, ranks = start
    answers, rng = Answers.none(c.truth.shape), np.random.default_rng(0)
    said = np.zeros(c.truth.shape)
    measured = [ranks | measure(c, answers, suggested, said)]
    for _ in range(n_rounds):
        before, was_open = answers.present, answers.is_open
        P = suggested.P * was_open
        PERSONS[person](answers, P, c.truth, work, rng)
        new = answers.present & ~before
        said[new] = P[new]
        if way != "alone" and (answers.is_open != was_open).any():
            if _teach(c, answers, way):
                learned = learn(c, answers, way)
                ranks = rank_new(learned.annotator, c)
            suggested = suggest(learned, c, answers, ask=way == "answers")
        measured.append(ranks | measure(c, answers, suggested, said))
    return {name: np.stack([m[name] for m in measured]) for name in measured[0]}


def _teach(c: Collection, answers: Answers, way: str) -> bool:
    """Return whether answers teach anything: what was accepted in bulk does not."""
    return way == "as complete" or bool((answers.accepted | answers.rejected).any())


def rank_new(annotator: FeatureAnnotator, c: Collection) -> Arrays:
    """Measure the MAP on new photographs, also in resamples of them."""
    scores, truth = annotator.decision_function(c.new_features), _sparse(c.new_truth)
    weights = resample_weights(len(scores), RESAMPLES, 0)
    return {
        "map": np.array(mean_average_precision(truth, scores)),
        "resampled_map": weighted_map(truth, scores, weights),
    }


def measure(c: Collection, answers: Answers, suggested: Suggested, said: np.ndarray) -> Arrays:
    """Count what is pending and accepted on each photograph that is not complete.

    `said` (N×D) are the confidences of tags when they were accepted.
    """
    rest, is_open, right = slice(c.n_complete, None), answers.is_open, c.truth
    P, asked = suggested.P * is_open, suggested.asked & is_open
    pending, accepted = P >= PENDING, answers.present

    def count(values: np.ndarray) -> np.ndarray:
        return values[..., rest, :].sum(axis=-1).astype(np.float32)

    return {
        "pending": count(pending),
        "pending_right": count(pending & right),
        "pending_said": count(P * pending),
        "asked": count(asked),
        "asked_right": count(asked & right),
        "accepted": count(accepted),
        "accepted_right": count(accepted & right),
        "accepted_said": count(said * accepted),
        "n_missing": np.array(right[rest].sum() + c.n_never),
        "n_actions": np.array(answers.n_actions),
    }


# --- everything -----------------------------------------------------------------------------


def list_cells(plan: Plan) -> Iterator[Cell]:
    """List the simulations: one share has all persons, and what tagkin did before on two sets."""
    for share, name, person, way in product(plan.shares, plan.sets, PERSONS, WAYS):
        is_main, is_before = share == MAIN_SHARE, way == "as complete"
        if is_before and not (is_main and name in BEFORE and person in MAIN_PERSONS):
            continue
        if is_main or person in MAIN_PERSONS:
            yield Cell(name, share, person, way)


def run_cell(plan: Plan, cell: Cell, store: Store) -> Arrays:
    """Play the rounds of a cell; they are played once."""

    def compute() -> Arrays:
        start = open_start(plan.kind, cell.set, cell.share, store.folder)
        n_photographs, n_pages = len(start.collection.X), plan.sets[cell.set].n_pages
        work = n_photographs // 10 if cell.person == "photographs" else n_pages
        return play(start, cell.person, cell.way, ROUNDS[cell.person], work)

    return store.get_or_compute(plan.kind, compute, **cell._asdict())


@lru_cache(maxsize=1)
def open_start(kind: str, name: str, share: float, results: Path) -> Start:
    """Draw a collection of a plan, and learn from its complete photographs."""
    plan = next(plan for plan in (SHOWN, DEVELOPMENT, QUICK) if plan.kind == kind)
    return Start.of(draw(plan, name, share, results))


def rank_knowing_all(plan: Plan, name: str, store: Store) -> float:
    """Measure the MAP of a model of all true tags, with the tags that can be learned."""

    def compute() -> Arrays:
        c = draw(plan, name, MAIN_SHARE, store.folder)
        everything = c._replace(tags=c.truth)
        learned = learn(everything, Answers.none(c.truth.shape), "alone")
        return rank_new(learned.annotator, everything)

    return float(store.get_or_compute(f"{plan.kind}-all", compute, set=name)["map"])
