"""Small saved models of every kind, and how each is used."""

import functools
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tagkin import (
    Annotator,
    FeatureAnnotator,
    KinReadout,
    LabelCalibrator,
    LandmarkMap,
    LogisticReadout,
    SemanticSpace,
    Vocabulary,
    save,
)
from tagkin.paper import (
    Chi2View,
    LinearSVM,
    NeighborVoting,
    RidgeTransfer,
    TagDenoiser,
    TagProp,
    TagRelevance,
    TwoPassKNN,
    WordVectorView,
)
from tests.annotator.conftest import SyntheticPhotographs, seen
from tests.conftest import make_collection
from tests.hardening.crafting import Crafted

X, Y, X_NEW = make_collection(60, d=8, n_labels=4)
NAMES = ["sea", "sky", "animal|dog", "Zoë"]
TAGS = [[NAMES[t] for t in np.flatnonzero(row)] for row in Y]
PHOTOS = SyntheticPhotographs(130)


def _annotator(**settings: Any) -> Annotator:
    rejected = [["boat"] if i % 9 == 0 else [] for i in range(120)]
    model = Annotator(cache=False, **settings)
    return model.fit(seen(PHOTOS.X[:120]), PHOTOS.tags[:120], rejected=rejected)


class _Prior:
    """What names say: what a regression on the features says, so that they help."""

    def meanings(self, names):
        from tagkin.tag_meanings import Meanings

        weights = np.linalg.lstsq(X, Y, rcond=None)[0].T.astype(np.float32)
        rows = weights[[NAMES.index(name) for name in names]]
        return Meanings(rows, np.zeros(len(names), dtype=bool), is_centered=False)

    def scores(self, features, rows):
        return np.asarray(features @ np.asarray(rows).T, np.float32)

    def log_odds(self, features, table):
        return self.scores(features, table.rows)


_PRIOR: Any = _Prior()  # in place of a NamePrior


def _with_names() -> FeatureAnnotator:
    learned = FeatureAnnotator(method=NeighborVoting(20), prior=_PRIOR)
    learned.fit(X, TAGS)
    learned.prior = None  # a model goes without it
    return learned


def _extended() -> FeatureAnnotator:
    """With images that came later, which no model held out."""
    return FeatureAnnotator().fit(X[:50], TAGS[:50]).partial_fit(X[50:], TAGS[50:])


def _with_moments() -> FeatureAnnotator:
    """With times, places and folders, so with confidences of three kinds of images."""
    hours = np.random.default_rng(0).permutation(2.0 * np.arange(len(X)))
    places = np.where(hours[:, None] % 3 > 0, [46.0, 7.0], np.nan)
    folders = [f"trip {int(hour) // 30}" for hour in hours]
    return FeatureAnnotator().fit(X, Y, times=3600 * hours, places=places, folders=folders)


_MAKERS = {
    "annotator": lambda: _annotator(),
    "annotator-tagprop": lambda: _annotator(method=TagProp(20)),
    "calibrator": lambda: LabelCalibrator().fit(np.random.default_rng(0).random(Y.shape), Y),
    "denoiser": lambda: TagDenoiser(20, blend=0.5).fit(X, Y),
    "extended": _extended,
    "feature-annotator": lambda: FeatureAnnotator(method=TwoPassKNN()).fit(X, Y),
    "kin-readout": lambda: KinReadout().fit(X, Y),
    "landmark-map": lambda: LandmarkMap(n_landmarks=10).fit(X),
    "linear": lambda: LinearSVM().fit(X, Y),
    "moments": _with_moments,
    "named": _with_names,
    "readout": lambda: LogisticReadout().fit(X, Y),
    "ridge": lambda: RidgeTransfer().fit(X, Y),
    "space": lambda: SemanticSpace().fit(X, Y),
    "space-chi2": lambda: SemanticSpace(kernel="rbf", text_view=Chi2View(), n_landmarks=9).fit(
        X, Y
    ),
    "space-words": lambda: SemanticSpace(
        kernel="linear", text_view=WordVectorView(NAMES, vectors=np.eye(4, 3)), n_landmarks=9
    ).fit(X, Y),
    "tag-relevance": lambda: TagRelevance(20).fit(X, Y),
    "tagprop": lambda: TagProp(20).fit(X, Y),
    "tagprop-distance": lambda: TagProp(20, weights="distance", sigmoids=False).fit(X, Y),
    "two-pass": lambda: TwoPassKNN().fit(X, Y),
    "unknown": lambda: FeatureAnnotator().fit(X, Y, complete=np.arange(len(X)) % 2 == 0),
    "vocabulary": lambda: Vocabulary(separator="|", merge_levels=True).fit(TAGS),
    "voting": lambda: NeighborVoting(20).fit(X, Y),
}
KINDS = sorted(_MAKERS)


@functools.cache
def saved(kind: str) -> Crafted:
    """The file of a model of a kind; `Crafted` is copied before it is changed."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Crafted(save(_MAKERS[kind](), Path(folder) / "model"))


def use(model: Any) -> list[Any]:
    """Ask a loaded model for all that it is for; the answers."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _answers(model)


def _answers(model: Any) -> list[Any]:
    answers: list[Any] = []
    if hasattr(model, "describe"):
        model.describe()
    if isinstance(model, Annotator):
        new = seen(PHOTOS.X[115:125], first=115)
        answers += [model.suggest(new, n=3), model.suggest(new, precision=0.8)]
        answers += [model.similar(new, 3), model.audit(5)]
    elif isinstance(model, FeatureAnnotator):
        if getattr(model, "names_", None) is not None:
            model.prior = _PRIOR
        taken: dict[str, Any] = {}
        if model.model_.occasions is not None:
            taken = {"times": 3600 * np.arange(5.0), "places": np.full((5, 2), 7.0)}
            taken["folders"] = ["trip 1"] * 5
        answers += [model.suggest(X_NEW[:5], n=2, **taken), model.audit(5)]
        labels = TAGS[:3] if model.vocabulary_ is not None else Y[:3]
        model.partial_fit(X[:3], labels)
        answers.append(model.suggest(X_NEW[:5], n=2))
    elif isinstance(model, SemanticSpace):
        answers.append(model.transform(X_NEW))
        answers.append(model.partial_fit(X[:20], Y[:20]).transform(X_NEW))
    elif isinstance(model, LabelCalibrator):
        scores = np.random.default_rng(1).random((5, model.calibration_.n_labels))
        answers.append(model.predict_proba(scores))
        model.threshold(0.5)
    elif isinstance(model, Vocabulary):
        answers.append(model.transform([["sea", "Dog|old"], ["ocean"]]))
        assert len(model.counts_) == len(model.names_)
    elif hasattr(model, "decision_function"):
        answers.append(model.decision_function(X_NEW))
        if hasattr(model, "explain"):
            answers.append(model.explain(X_NEW[:2], [0]))
    else:
        answers.append(model.transform(X_NEW))
    return answers


def numbers_of(value: Any) -> Iterator[np.ndarray]:
    """All numbers in an answer, whatever it is."""
    if sparse.issparse(value):
        value = value.data
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield value
    elif isinstance(value, float):
        yield np.array(value)
    elif is_dataclass(value) or hasattr(value, "_asdict"):
        names = value._fields if hasattr(value, "_fields") else [f.name for f in fields(value)]
        for name in names:
            yield from numbers_of(getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from numbers_of(item)
