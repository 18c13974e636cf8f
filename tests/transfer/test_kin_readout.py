"""Votes and read-out together: the formula, evidence, new labels, storage."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

import tagkin
from tagkin.arrays.labels import as_labels
from tagkin.errors import InvalidInput
from tagkin.transfer import KinReadout, LogisticReadout
from tests.conftest import assert_same, make_collection


@pytest.fixture
def model(collection):
    return KinReadout(20).fit(collection.X, collection.Y)


def dense_votes(X, Y, X_new, k, temperature, rejected=None, complete=None):
    """The formula of the class, with a loop."""
    unit, unit_new = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (X, X_new))
    is_known = np.ones_like(Y)
    if complete is not None:
        observed = Y if rejected is None else Y + rejected
        is_known = np.where(complete[:, None], 1.0, observed)
    cosines, share = unit_new @ unit.T, (Y.sum(axis=0) + 0.5) / (is_known.sum(axis=0) + 1)
    votes, against, known = np.zeros((3, len(X_new), Y.shape[1]))
    for i, row in enumerate(cosines):
        near = np.argsort(-row)[:k]
        weights = np.exp(temperature * row[near])
        votes[i] = (weights / weights.sum()) @ Y[near]
        known[i] = (weights / weights.sum()) @ is_known[near]
        if rejected is not None:
            against[i] = (weights / weights.sum()) @ rejected[near]
    return np.log(votes + 1e-3 * share) - np.log(known - votes + 1e-3 * (1 - share) + 9 * against)


def test_votes_and_read_out_are_what_the_formula_says(model, collection):
    X, Y, X_new = collection.X, (collection.Y > 0).astype(float), collection.X_new
    votes, readout = model.components(X_new)
    assert_same(votes, dense_votes(X, Y, X_new, 20, 10.0), 1e-7)
    alone = LogisticReadout(forgotten=0.1).fit(X, Y)
    assert_same(readout, alone.decision_function(X_new))
    assert_same(model.decision_function(X_new), votes / 3 + 2 * readout / 3, 1e-9)
    assert_same(model.predict_proba(X_new), expit(model.decision_function(X_new)))


def test_evidence_has_a_share_of_the_read_out(model, collection):
    best = model.suggest(collection.X_new, 1)
    for (explanation,) in model.explain(collection.X_new, best):
        if explanation.score > 0:
            assert 0 <= explanation.readout <= explanation.score
    votes_only = replace(model.model_, readout=None)
    columns = [[suggestion.label] for (suggestion,) in best]
    for (explanation,) in votes_only.explain(columns, range(6), embeddings=collection.X_new):
        assert explanation.readout == pytest.approx(0)


def test_a_new_label_has_votes_alone(model, collection):
    wider = np.column_stack([np.zeros((10, 6)), np.ones(10)])
    near = collection.X_new[:1] + 1e-3 * np.random.default_rng(0).standard_normal((10, 12))
    model.partial_fit(near, wider)
    assert model.suggest(collection.X_new[:1], 1)[0][0].label == 6
    (evidence,) = model.explain(collection.X_new[:1], [6])[0]
    assert evidence.readout == pytest.approx(0)


def test_it_is_kept_in_a_folder(model, collection, tmp_path):
    again = tagkin.load(tagkin.save(model, tmp_path / "model"))
    assert_same(
        again.decision_function(collection.X_new), model.decision_function(collection.X_new)
    )


def test_rejected_labels_reach_the_read_out(collection):
    X, Y, _ = make_collection(200)
    rejected = np.zeros_like(Y)
    plain = KinReadout(10).fit(X, Y)
    unsaid = np.flatnonzero(Y[:, 0] == 0)
    rejected[unsaid[:20], 0] = 1
    informed = clone(plain).fit(X, Y, rejected=rejected)
    before, after = (m.components(X).readout[unsaid[:20], 0] for m in (plain, informed))
    assert after.mean() < before.mean()


def some_rejected(Y, n=30):
    """Labels that the images do not carry, of the first n that lack any."""
    rejected = np.zeros_like(Y)
    rows, columns = np.nonzero(Y == 0)
    rejected[rows[: 3 * n : 3], columns[: 3 * n : 3]] = 1
    return rejected


def test_neighbours_that_rejected_a_label_vote_against_it(collection):
    X, Y, X_new = collection.X, (collection.Y > 0).astype(float), collection.X_new
    rejected = some_rejected(Y)
    model = KinReadout(20).fit(X, Y, rejected=rejected)
    expected = dense_votes(X, Y, X_new, 20, 10.0, rejected)
    assert_same(model.components(X_new).votes, expected, 1e-7)
    assert np.abs(expected - dense_votes(X, Y, X_new, 20, 10.0)).max() > 0.1


@pytest.mark.parametrize("with_rejections", [False, True])
def test_votes_are_shares_among_neighbours_that_are_known(collection, with_rejections):
    X, Y, X_new = collection.X, (collection.Y > 0).astype(float), collection.X_new
    complete = np.arange(len(X)) % 3 > 0
    rejected = some_rejected(Y) if with_rejections else None
    model = KinReadout(20).fit(X, Y, rejected=rejected, complete=complete)
    expected = dense_votes(X, Y, X_new, 20, 10.0, rejected, complete)
    assert_same(model.components(X_new).votes, expected, 1e-7)
    assert np.abs(expected - dense_votes(X, Y, X_new, 20, 10.0, rejected)).max() > 0.1


@pytest.mark.parametrize("kind", ["rejected", "complete"])
def test_what_is_known_of_images_that_come_later(kind, collection, tmp_path):
    """Replaced and taken away, votes are those of a fit on all of them."""
    X, Y, X_new = collection.X, (collection.Y > 0).astype(float), collection.X_new
    half = len(X) // 2
    values = some_rejected(Y, 60) if kind == "rejected" else np.arange(len(X)) % 3 > 0

    def votes(model):
        return model.components(X_new).votes

    said = as_labels(values) if kind == "rejected" else values
    whole = KinReadout(20).fit(X, Y, **{kind: values})
    late = KinReadout(20).fit(X[:half], Y[:half], **{kind: values[:half]})
    late.partial_fit(X[half:], Y[half:])
    late.model_ = late.model_.relabel(as_labels(Y), **{kind: said})
    assert_same(votes(late), votes(whole), 1e-9)
    assert_same(votes(tagkin.load(tagkin.save(late, tmp_path / "model"))), votes(whole), 1e-9)
    late.model_ = late.model_.relabel(as_labels(Y))
    assert_same(votes(late), votes(KinReadout(20).fit(X, Y)), 1e-9)


@pytest.mark.parametrize("kind", ["rejected", "complete"])
def test_added_images_are_complete_and_reject_nothing(kind, collection):
    X, Y, X_new = collection.X, (collection.Y > 0).astype(float), collection.X_new
    half = len(X) // 2
    values = some_rejected(Y, 60) if kind == "rejected" else np.arange(len(X)) % 3 > 0
    values[half:] = kind == "complete"
    grown = KinReadout(20).fit(X[:half], Y[:half], **{kind: values[:half]})
    grown.partial_fit(X[half:], Y[half:])
    whole = KinReadout(20).fit(X, Y, **{kind: values})
    assert_same(grown.components(X_new).votes, whole.components(X_new).votes, 1e-9)


def test_what_cannot_be_known_is_refused(collection):
    X, Y = collection.X, (collection.Y > 0).astype(float)
    with pytest.raises(InvalidInput, match="has a label that is also rejected"):
        KinReadout(20).fit(X, Y, rejected=Y)
    with pytest.raises(InvalidInput, match=f"complete must be an array of {len(X)} booleans"):
        KinReadout(20).fit(X, Y, complete=np.ones(len(X) - 1, bool))


def test_a_temperature_must_be_positive(collection):
    with pytest.raises(InvalidInput, match="temperature must be a number above 0; found 0"):
        KinReadout(temperature=0).fit(collection.X, collection.Y)


def test_other_labels_have_other_shares(collection, model):
    """Without a neighbour that carries it, a label's votes are those of its share of all images."""
    before = model.components(collection.X_new).votes
    fewer = collection.Y.copy()
    fewer[5:] = 0
    after = KinReadout(20).fit(collection.X, fewer).components(collection.X_new).votes
    model.model_ = model.model_.relabel(as_labels(fewer))
    assert_same(model.components(collection.X_new).votes, after, 1e-9)
    assert (after <= before + 1e-9).all()
