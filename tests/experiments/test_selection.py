"""Settings are chosen as by scikit-learn's `GridSearchCV`, on shared neighbour lists."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from experiments.config import find_config
from experiments.methods import grid
from experiments.problem import expert_problem, open_data, tag_problem
from experiments.selection import best_setting, cross_validated, folds
from tagkin import SemanticSpace
from tagkin.model_selection import random_folds
from tagkin.paper import LinearSVM, NeighborVoting, TagProp, TwoPassKNN

CONFIG = find_config("smoke")
ESTIMATORS = {
    "NNvot": (NeighborVoting(), lambda s: {"n_neighbors": s["K"]}),
    "TagProp": (TagProp(), lambda s: {"n_neighbors": s["K"]}),
    "2PKNN": (TwoPassKNN(), lambda s: {"n_per_label": s["K1"], "decay": s["w"]}),
    "SVM": (LinearSVM(), lambda s: {"C": s["C"]}),
}


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return expert_problem(open_data(CONFIG, tmp_path_factory.mktemp("cache")), CONFIG)


@pytest.mark.parametrize("method", ESTIMATORS)
@pytest.mark.parametrize("recipe", ["visual", "linear"])
def test_trials_are_those_of_a_grid_search(problem, method, recipe):
    predictions = cross_validated(problem, recipe, CONFIG, [method])[method]
    estimator, named = ESTIMATORS[method]
    prefix = ""
    if recipe == "linear":
        space = SemanticSpace(0.5, n_landmarks=CONFIG.n_landmarks, random_state=CONFIG.seed)
        prefix = f"{type(estimator).__name__.lower()}__"
        estimator = make_pipeline(space, estimator)
    for setting, values in zip(grid(method, CONFIG), predictions, strict=True):
        values_of = {f"{prefix}{name}": [v] for name, v in named(setting).items()}
        parts = random_folds(len(problem.known), len(values), CONFIG.seed)
        search = GridSearchCV(estimator, values_of, cv=parts).fit(problem.known, problem.Y)
        found = [search.cv_results_[f"split{i}_test_score"][0] for i in range(len(parts))]
        np.testing.assert_allclose(values, found, atol=1e-6)


def test_the_first_of_the_best_is_chosen():
    trials = np.array([[0.1, 0.1], [0.3, 0.3], [0.3, 0.3]])
    config = replace(CONFIG, neighbors=(1, 2, 3))
    assert best_setting("NNvot", trials, config) == {"K": 2}


def test_of_nearly_equal_costs_the_largest_is_taken():
    trials = np.array([[0.3], [0.303], [0.299], [0.29]])
    config = replace(CONFIG, costs=(0.01, 0.1, 1.0, 10.0))
    assert best_setting("SVM", trials, config) == {"C": 1.0}


def test_folds_hold_every_image_out_once():
    parts = folds(100, seed=0)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(100))


def test_settings_see_no_test_image(problem):
    """Trials do not depend on the new images or their labels."""
    other = replace(problem, new=problem.new[:3] * 0, truth=problem.truth[:3])
    for recipe in ("visual", "linear"):
        first, two = (cross_validated(p, recipe, CONFIG, ["NNvot"]) for p in (problem, other))
        assert np.array_equal(first["NNvot"], two["NNvot"])


def test_tags_are_measured_by_labels(tmp_path):
    data = open_data(CONFIG, tmp_path)
    problem = tag_problem(data, CONFIG)
    assert problem.names == list(data.label_names)
    assert problem.Y.shape == (len(data.train), 10)
    assert problem.truth.shape == (CONFIG.n_new_small, 10)
