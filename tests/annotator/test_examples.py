"""A few examples of each label, and nothing known of all other images."""

import numpy as np
import pytest

from tagkin import FeatureAnnotator, Vocabulary
from tagkin.annotator.problem import has_examples_only

N, N_EXAMPLES = 400, 8
WORDS = ("Anna", "Ben", "Zoo")
SHARES = (0.05, 0.1, 0.2)


@pytest.fixture(scope="module")
def drawn():
    """Features, which images have each of three words, and eight examples of each."""
    rng = np.random.default_rng(0)
    Y = rng.random((N, len(WORDS))) < SHARES
    X = 3 * Y @ rng.standard_normal((len(WORDS), 24)) + rng.standard_normal((N, 24))
    chosen = [rng.permutation(np.flatnonzero(column))[:N_EXAMPLES] for column in Y.T]
    is_example = np.zeros_like(Y)
    for t, images in enumerate(chosen):
        is_example[images, t] = True
    return X, Y, is_example


def tags_of(is_example):
    return [[WORDS[t] for t in np.flatnonzero(row)] for row in is_example]


def fit(X, tags, **options):
    annotator = FeatureAnnotator(vocabulary=Vocabulary(min_count=1))
    return annotator.fit(X, tags, complete=np.zeros(N, bool), **options)


def open_suggestions(annotator, X):
    """Confidence of each suggestion of at least 30 %, its image and its word."""
    suggested = annotator.suggest(X, known=np.arange(N), threshold=0.3, n=len(WORDS))
    return [(s.confidence, i, WORDS.index(s.name)) for i, row in enumerate(suggested) for s in row]


def test_a_few_examples_say_no_more_than_they_know(drawn):
    X, Y, is_example = drawn
    found = open_suggestions(fit(X, tags_of(is_example)), X)
    said, right = sum(p for p, *_ in found), sum(Y[i, t] for _, i, t in found)
    assert len(found) >= 20
    assert not any(is_example[i, t] for _, i, t in found)
    assert said <= right + 0.1 * len(found)


def test_rejected_suggestions_lower_a_word_and_accepted_ones_raise_it(drawn):
    X, _, is_example = drawn
    before = fit(X, tags_of(is_example))
    asked = [(i, t) for _, i, t in open_suggestions(before, X) if t][:40]
    tags, rejected, accepted = tags_of(is_example), [[] for _ in X], [[] for _ in X]
    for i, t in asked:
        if t == 1:
            rejected[i].append(WORDS[t])
        else:
            tags[i].append(WORDS[t])
            accepted[i].append(WORDS[t])
    after = fit(X, tags, rejected=rejected, accepted=accepted)
    new = np.random.default_rng(5).standard_normal((100, X.shape[1])) + X[:100]
    moved = (after.decision_function(new) - before.decision_function(new)).mean(axis=0)
    _, ben, zoo = (moved[list(after.classes_).index(word)] for word in WORDS)
    assert ben < zoo


def test_untagged_images_are_not_audited(drawn):
    X, _, is_example = drawn
    assert fit(X, tags_of(is_example)).audit() == []


def test_a_saved_model_suggests_the_same(drawn, tmp_path):
    from tagkin.storage import load

    X, _, is_example = drawn
    annotator = fit(X, tags_of(is_example))
    loaded = load(annotator.save(tmp_path / "model"))
    assert open_suggestions(loaded, X) == open_suggestions(annotator, X)


@pytest.mark.parametrize(
    ("n_complete", "n_examples", "labels_each", "n_accepted", "n_others", "expected"),
    [
        (0, 32, 1, 0, 468, True),
        (20, 32, 1, 0, 448, True),
        (40, 32, 1, 0, 428, False),  # complete images tell more
        (0, 32, 2, 0, 468, False),  # and so do examples with several labels
        (0, 32, 1, 0, 20, False),  # hardly anything is untagged
        (0, 0, 1, 100, 400, False),  # answers to suggestions, no examples
        (0, 32, 1, 100, 368, True),
    ],
)
def test_when_examples_are_all_that_is_known(
    n_complete, n_examples, labels_each, n_accepted, n_others, expected
):
    sizes = n_complete, n_examples, n_accepted, n_others
    complete = np.repeat([True, False, False, False], sizes)
    n_labels = np.repeat([3, labels_each, 2, 0], sizes)
    accepted = np.repeat([0, 0, 2, 0], sizes)
    assert has_examples_only(complete, n_labels, accepted) is expected
