"""Persons who answer round after round, what a model learns from them, and how it is counted."""

import csv

import numpy as np
import pytest

from experiments.__main__ import main
from experiments.loop import Cell, Collection, Start, learn, make_collection, measure, play
from experiments.loop import Suggested as Suggestions
from experiments.loop_new_tags import count_suggestions, suggest_new_tags
from experiments.loop_page import write_page
from experiments.loop_persons import PERSONS, Answers, list_pages
from experiments.loop_rounds import Results, compare_totals
from experiments.persons import clicked, marked
from experiments.problem import is_available


@pytest.fixture(scope="module")
def confidences():
    rng = np.random.default_rng(0)
    P = rng.random((150, 5)) * (rng.random((150, 5)) < 0.7)
    return P, rng.random(P.shape) < P


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(1)
    truth = rng.random((700, 6)) < [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
    X = truth @ rng.random((6, 16)) + 0.35 * rng.random((700, 16))
    return make_collection(X, truth, truth, np.arange(400), np.arange(400, 700), 0.25)


@pytest.fixture(scope="module")
def start(collection):
    return Start.of(collection)


def answer(person, P, truth, n, seed=0):
    answers = Answers.none(P.shape)
    PERSONS[person](answers, P, truth, n, np.random.default_rng(seed))
    return answers


# --- persons ------------------------------------------------------------------------------


def test_pages_are_of_the_tags_that_promise_most(confidences):
    P, _ = confidences
    best = [np.sort(column)[-60:].sum() for column in P.T]
    pages = list_pages(P, 3)
    assert [tag for tag, _ in pages] == np.argsort(best)[::-1][:3].tolist()
    for tag, rows in pages:
        assert len(rows) == 60
        assert P[rows, tag].min() >= np.delete(P[:, tag], rows).max()
    few = np.zeros((100, 2))
    few[:7, 1] = 0.5
    assert [(tag, rows.tolist()) for tag, rows in list_pages(few, 2)] == [(1, list(range(7)))]


def test_a_careful_person_says_the_truth(confidences):
    P, truth = confidences
    answers = answer("pages", P, truth, 2)
    said = answers.accepted | answers.rejected
    assert said.sum() == 120
    assert (answers.accepted == (truth & said)).all()
    assert answers.n_actions == sum(marked(truth[r, t]).n_actions for t, r in list_pages(P, 2))


def test_a_hasty_person_overlooks_and_leaves_open(confidences):
    P, truth = confidences
    careful, hasty = (answer(person, P, truth, 5) for person in ("pages", "hasty"))
    assert not (careful.accepted & ~hasty.accepted).any()
    wrong = hasty.accepted & ~truth
    assert 0 <= wrong.sum() <= 0.2 * careful.rejected.sum()
    left = careful.rejected & hasty.is_open
    plausible = careful.rejected & (P >= 0.5)
    assert not (left & ~plausible).any()
    assert 0.2 < left.sum() / plausible.sum() < 0.8


def test_photographs_are_answered_once_and_whole(confidences):
    P, truth = confidences
    answers = answer("photographs", P, truth, 20)
    first = answers.accepted | answers.rejected
    rows = np.flatnonzero((P > 0).any(axis=1))[:20]
    assert (first[rows] == (P[rows] > 0)).all()
    assert first.sum() == first[rows].sum()
    assert answers.n_actions == sum(clicked(truth[r, P[r] > 0]) for r in rows)
    PERSONS["photographs"](answers, P * answers.is_open, truth, 20, np.random.default_rng(0))
    again = (answers.accepted | answers.rejected) & ~first
    assert np.flatnonzero(again.any(axis=1)).min() > rows[-1]


def test_in_bulk_nobody_looks(confidences):
    P, truth = confidences
    answers = answer("bulk", P, truth, 5)
    assert (answers.bulk == (P >= 0.8)).all()
    assert not answers.accepted.any()
    assert (answers.bulk & ~truth).any()


# --- what is learned ------------------------------------------------------------------------


def test_tags_of_a_collection_are_on_two_complete_photographs():
    truth = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1]], bool)
    c = make_collection(np.arange(8.0).reshape(4, 2), truth, truth, np.arange(4), np.arange(1), 0.5)
    assert c.tags.tolist() == [[True], [True]]
    assert c.n_never == 4


def test_answers_teach_and_bulk_does_not(collection):
    c = collection
    answers = Answers.none(c.truth.shape)
    answers.bulk[150:200, 0] = True
    answers.accepted[210, 1] = answers.rejected[220, 2] = True
    learned = learn(c, answers, "answers")
    labels = learned.annotator.method_.labels.toarray() > 0
    assert learned.annotator.model_.complete.tolist() == [True] * 100 + [False] * 2
    assert np.flatnonzero(learned.known >= 0).tolist() == [*range(100), 210, 220]
    assert (labels[:100] == c.tags).all()
    assert np.argwhere(labels[100:]).tolist() == [[0, 1]]
    assert np.argwhere(learned.annotator.model_.rejected.toarray()).tolist() == [[101, 2]]
    before = learn(c, answers, "as complete")
    assert np.flatnonzero(before.known >= 0).tolist() == [*range(100), *range(150, 200), 210]
    assert before.annotator.model_.complete.all()


# --- counting -------------------------------------------------------------------------------


def test_counts_of_a_round_by_hand():
    truth = np.array([[1, 0], [1, 1], [0, 1], [1, 0]], bool)
    nothing = np.zeros((0, 2))
    c = Collection(np.zeros((4, 1)), truth[:1], truth, nothing, nothing, n_never=2)
    P = np.array([[0, 0], [0.9, 0.6], [0.7, 0.2], [0.5, 0]])
    answers, said = Answers.none(truth.shape), np.zeros(truth.shape)
    answers.accepted[1, 0], said[1, 0], answers.n_actions = True, 0.8, 7
    counts = measure(c, answers, Suggestions(P, np.stack([P >= 0.6, P >= 0.9, P > 1])), said)
    assert counts["pending"].tolist() == [1, 1, 1]
    assert counts["pending_right"].tolist() == [1, 0, 1]
    np.testing.assert_allclose(counts["pending_said"], [0.6, 0.7, 0.5], rtol=1e-6)
    assert counts["asked"].tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert counts["asked_right"].sum() == 1
    assert counts["accepted"].tolist() == counts["accepted_right"].tolist() == [1, 0, 0]
    assert counts["accepted_said"].sum() == pytest.approx(0.8)
    assert (counts["n_missing"], counts["n_actions"]) == (6, 7)


def test_the_ratio_of_totals_and_its_interval():
    rng = np.random.default_rng(0)
    theirs = rng.poisson(3, 2000).astype(float)
    ours = theirs + rng.poisson(0.3, 2000)
    ratio, low, high = compare_totals(ours, theirs)
    assert ratio == pytest.approx(ours.sum() / theirs.sum())
    half = 1.96 * np.std(ours - ratio * theirs) / np.sqrt(2000) / theirs.mean()  # delta method
    assert (high - low) / 2 == pytest.approx(half, rel=0.2)
    assert low < ratio < high


def test_suggestions_of_a_new_tag_are_counted():
    counts = count_suggestions(np.array([0.9, 0.5, 0.1, 0.0]), np.array([1, 0, 1, 1], bool))
    np.testing.assert_allclose(counts, [4, 3, 3, 2, 1.5, 2, 1, 1.4])


# --- rounds ---------------------------------------------------------------------------------


def test_rounds_and_their_page(start, tmp_path):
    played = {}
    for person in PERSONS:
        for way in ("alone", "answers"):
            played[Cell("coco", 0.2, person, way)] = play(start, person, way, 3, 3)
    pages, alone = (played[Cell("coco", 0.2, "pages", w)] for w in ("answers", "alone"))
    for arrays in played.values():
        totals = arrays["accepted"].sum(axis=1)
        assert totals[0] == 0
        assert (np.diff(totals) >= 0).all()
        assert (arrays["accepted_right"].sum(axis=1) <= arrays["n_missing"]).all()
    assert (pages["accepted"] == pages["accepted_right"]).all()
    assert (alone["map"] == alone["map"][0]).all()
    assert pages["map"][3] != pages["map"][0] == alone["map"][0]
    in_bulk = [played[Cell("coco", 0.2, "bulk", way)]["pending"] for way in ("alone", "answers")]
    np.testing.assert_array_equal(*in_bulk)
    write_page(Results(played, {"coco": 90.0}, {}), tmp_path)
    text = (tmp_path / "loop.md").read_text()
    assert f"MAP on new photographs by {100 * (pages['map'][3] - pages['map'][0]):+.1f}" in text
    assert (tmp_path / "loop.svg").read_text().count("<svg") == 1
    with (tmp_path / "loop.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 1 + 4 * len(played)
    assert all(len(row) == len(rows[0]) for row in rows)


def test_new_tags_are_learned_both_ways(collection):
    counts = suggest_new_tags(collection, 3)
    for way in ("at once", "full fit"):
        n_new = (collection.truth[100:].sum(axis=0) >= 30).sum()
        assert counts[way].shape == (n_new, 8)
        assert (counts[way][:, 3] <= counts[way][:, 2]).all()


@pytest.mark.skipif(not is_available("coco"), reason="COCO is not in the data folder")
def test_the_quick_run_writes_the_page(tmp_path):
    folders = ["--results", str(tmp_path / "results"), "--report", str(tmp_path / "report")]
    main(["loop", "--quick", *folders])
    text = (tmp_path / "report" / "loop.md").read_text()
    assert text.startswith("# Do answers improve suggestions?\n")
    assert "| COCO | 20 % | answers pages |" in text
    assert {p.name for p in (tmp_path / "report").iterdir()} == {"loop.md", "loop.csv", "loop.svg"}
