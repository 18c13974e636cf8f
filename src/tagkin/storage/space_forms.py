"""How spaces, searches and methods are stored: arrays with dimensions in common.

See `tagkin.storage.schema` for what the dimensions are called.
"""

from __future__ import annotations

from tagkin.storage.fields import (
    Choice,
    Dim,
    Either,
    Field,
    Flag,
    Flags,
    Floats,
    Indices,
    Sparse,
    Table,
    Text,
    Texts,
    Value,
    Whole,
)
from tagkin.storage.forms import Parameter, Part, Stored

__all__ = ["ANY", "METRIC", "OUTPUT", "POSITIVE", "SEED", "SHARE", "SPACE", "TRANSFER", "features"]

ANY, POSITIVE = Parameter(), Value(above=0)
SHARE = Value(low=0, high=1)
_FORGOTTEN = Value(low=0, high=1 - 1e-9)
METRIC = Choice(("cosine", "euclidean"))
SEED = Whole(high=2**32 - 1).or_none()
_KERNELS = "ArcCosine ExpChi2 Linear RBF"
_VIEWS = "Chi2View IndicatorView OntologyView WordVectorView"


def features(size: str) -> dict[str, Field]:
    """How many features a fitted estimator takes, and what they are called."""
    names = Texts(size).or_absent()
    return {"n_features_in_": Dim(size).or_absent(), "feature_names_in_": names}


# What `set_output` was told: of which kind the tables are that `transform` gives.
OUTPUT: dict[str, Field] = {
    "_sklearn_output_config": Table(Choice(("default", "pandas", "polars"))).or_absent()
}


# --- kernels and the space ---------------------------------------------------------------

SPACE = {
    "ArcCosine": Stored(
        "tagkin.kernels.arc_cosine",
        learned={"order": Whole(high=2), "normalized": Flag()},
    ),
    "Linear": Stored("tagkin.kernels.linear"),
    "RBF": Stored("tagkin.kernels.rbf", learned={"gamma": POSITIVE.or_none()}),
    "ExpChi2": Stored("tagkin.kernels.exp_chi2", learned={"scale": POSITIVE.or_none()}),
    "Landmarks": Stored(
        "tagkin.space.landmarks",
        learned={
            "kernel": Part(_KERNELS),
            "points": Floats("r", "d"),
            "indices": Indices("r").or_none(),
        },
    ),
    "LandmarkMap": Stored(
        "tagkin.space.landmarks",
        parameters={
            "kernel": ANY,
            "n_landmarks": Whole(1),
            "selection": ANY,
            "random_state": SEED,
            **OUTPUT,
        },
        learned={
            "landmarks_": Part("Landmarks", r="r", d="d"),
            "factor_": Floats("r", "r", triangular=True),
            **features("d"),
        },
        takes="d",
        gives="r",
    ),
    "Moments": Stored(
        "tagkin.space.moments",
        learned={
            "count": Whole(),
            "shift": Floats("r"),
            "kernel_sum": Floats("r"),
            "text_sum": Floats("q"),
            "kernel_gram": Floats("r", "r"),
            "cross": Floats("r", "q"),
            "text_gram": Floats("q", "q"),
        },
        apart=("shift", "kernel_sum", "text_sum", "kernel_gram", "cross", "text_gram"),
    ),
    "Projection": Stored(
        "tagkin.space.solution",
        learned={
            "correlations": Floats("m").or_none(),
            "coefficients": Floats("r", "m"),
            "kernel_mean": Floats("r"),
            "text_mean": Floats("q"),
            "readout": Floats("m", "q"),
        },
    ),
    "SemanticSpace": Stored(
        "tagkin.space.semantic_space",
        parameters={
            "regularization": ANY,
            "kernel": ANY,
            "text_view": ANY,
            "n_landmarks": Whole(1),
            "selection": ANY,
            "n_components": ANY,
            "scaling": ANY,
            "random_state": SEED,
            **OUTPUT,
        },
        learned={
            "text_view_": Part(_VIEWS, q="q"),
            "landmarks_": Part("Landmarks", r="r", d="d"),
            "_moments": Part("Moments", r="r", q="q").or_none(),
            # of an exact fit, in which every image is a landmark
            "_exact_text": Either(Sparse("r", "q", low=-1e30), Floats("r", "q")).or_none(),
            "_solution": Part("Projection", r="r", m="m", q="q").or_none(),
            "_label_names": Texts("D").or_none().or_absent(),
            **features("d"),
        },
        checks=("check_parameters",),
        some_of=(("_solution", "_moments"),),
        takes="d",
        gives="m",
    ),
    "IndicatorView": Stored(
        "tagkin.space.views",
        parameters={"max_labels": Whole(1)},
        learned={
            "n_labels_": Dim("D"),
            "kept_": Indices("q", below="D", ascending=True),
        },
        on_host=("kept_",),
    ),
    "Chi2View": Stored(
        "tagkin.space.chi2_view",
        parameters={"n_landmarks": Whole(1), "random_state": SEED},
        learned={
            "map_": Part("LandmarkMap", r="q"),
            "scale_": POSITIVE,
            "scale_error_": Value(low=0),
        },
    ),
    "OntologyView": Stored(
        "tagkin.labels.ontology",
        parameters={"names": ANY, "wordnet": ANY, "senses": Choice(("best", "first"))},
        learned={
            "factor_": Floats("D", "q"),
            "clipped_": Value(),
            "unknown_": Texts(),
            "unattested_": Texts(),
        },
    ),
    "WordVectorView": Stored(
        "tagkin.labels.word_view",
        parameters={"names": ANY, "vectors": ANY},
        learned={
            "vectors_": Floats("D", "q"),
            "known_": Flags("D"),
            "coverage_": SHARE,
            "unknown_": Texts(),
        },
    ),
    "WordVectors": Stored(
        "tagkin.lexicons.word_vectors",
        learned={
            "path": Text().or_none(),
            "layout": Choice(("text", "binary", "package")),
            "dimension": Whole(1),
            "n_words": Whole().or_none(),
            "start": Whole(),
        },
    ),
}

# --- neighbours and methods --------------------------------------------------------------

_OF_EVERY_METHOD: dict[str, Field] = {
    "n_labels_": Dim("D"),
    "_label_names": Texts("D").or_none().or_absent(),
    **features("m"),
}
_BY_NEIGHBORS: dict[str, Field] = {
    "labels_": Sparse("N", "D"),
    "index_": Part("ExactNeighbors FaissNeighbors", N="N", m="m").or_none(),
    **_OF_EVERY_METHOD,
}
_VOTING: dict[str, Field] = {
    "n_neighbors": Whole(1),
    "metric": METRIC,
    "index": ANY,
}
_LINEAR: dict[str, Field] = {
    "coef_": Floats("m", "D"),
    "intercept_": Floats("D"),
    **_OF_EVERY_METHOD,
}

TRANSFER = {
    "ExactNeighbors": Stored(
        "tagkin.neighbors.exact",
        parameters={"metric": METRIC},
        learned={"points_": Floats("N", "m"), "_center": Floats("m").or_none()},
    ),
    "FaissNeighbors": Stored(
        "tagkin.neighbors.faiss",
        parameters={
            # an index of FAISS's own is made by them: nothing that asks for very much
            "factory": Text(r"(?!.*\d{6})[A-Za-z0-9,_()]{1,80}"),
            "search": Text(r"(?!.*\d{6})[A-Za-z0-9,_=.]{0,120}"),
            "metric": METRIC,
            "refine": Flag(),
        },
        learned={"points_": Floats("N", "m")},
        left_out=("_index", "_refining"),
    ),
    "NeighborVoting": Stored(
        "tagkin.transfer.voting",
        parameters={**_VOTING, "weighted": Flag()},
        learned=_BY_NEIGHBORS,
        takes="m",
    ),
    "TagRelevance": Stored(
        "tagkin.transfer.voting",
        parameters={**_VOTING, "weighted": Flag()},
        learned={
            **_BY_NEIGHBORS,
            "_user_names": Texts("users"),
            "users_": Indices("N", below="users").or_none(),
        },
        takes="m",
    ),
    "TagProp": Stored(
        "tagkin.transfer.tagprop",
        parameters={**_VOTING, "weights": ANY, "sigmoids": Flag(), "monotone": Flag()},
        learned={
            **_BY_NEIGHBORS,
            "rank_weights_": Floats("k", low=0).or_none(),
            "decay_": Value(low=0).or_none(),
            "slopes_": Floats("D").or_none(),
            "offsets_": Floats("D", endless=True).or_none(),
            "loss_": Value(),
        },
        checks=("_check_parameters",),
        some_of=(("rank_weights_", "decay_"),),
        on_host=("offsets_", "rank_weights_", "slopes_"),
        takes="m",
    ),
    "TwoPassKNN": Stored(
        "tagkin.transfer.twopass",
        parameters={
            "n_per_label": Whole(1),
            "decay": ANY,
            "form": ANY,
            "label_maximum": Flag(),
            "metric_learning": Flag(),
            "metric": METRIC,
            "random_state": SEED,
        },
        learned={
            **_BY_NEIGHBORS,
            "index_": Part("ExactNeighbors", N="N", m="m").or_none(),
            "dimension_weights_": Floats("m", low=0).or_none(),
        },
        checks=("_check_parameters",),
        on_host=("dimension_weights_",),
        takes="m",
    ),
    "KinReadout": Stored(
        "tagkin.transfer.kin_readout",
        parameters={
            **_VOTING,
            "temperature": POSITIVE,
            "regularization": POSITIVE,
            "n_landmarks": Whole(1),
            "random_state": SEED,
            "forgotten": _FORGOTTEN,
        },
        learned={
            **_BY_NEIGHBORS,
            "rejected_": Sparse("N", "D").or_none(),
            # labels that came later have no read-out
            "readout_": Part("LogisticReadout", D="learned", m="m").or_none(),
            "vote_weights_": Floats("D"),
            "readout_weights_": Floats("D"),
            "offsets_": Floats("D"),
        },
        at_most=(("learned", "D"),),
        on_host=("offsets_", "readout_weights_", "vote_weights_"),
        takes="m",
    ),
    "LogisticReadout": Stored(
        "tagkin.transfer.readout",
        parameters={
            "regularization": POSITIVE,
            "n_landmarks": Whole(1),
            "tol": POSITIVE,
            "random_state": SEED,
            "forgotten": _FORGOTTEN,
        },
        learned={
            **_OF_EVERY_METHOD,
            "landmarks_": Floats("r", "m"),
            "length_": Value(above=1e-30),
            "learned_": Indices("learned", below="D", ascending=True),
            "coef_": Floats("r", "learned"),
            "intercept_": Floats("D"),
            "n_iter_": Whole(),
        },
        on_host=("coef_", "intercept_"),
        takes="m",
    ),
    "LinearSVM": Stored(
        "tagkin.transfer.linear",
        parameters={
            "C": POSITIVE,
            "loss": Choice(("least-squares", "squared-hinge")),
            "comparable": Flag(),
        },
        learned=_LINEAR,
        takes="m",
    ),
    "RidgeTransfer": Stored(
        "tagkin.transfer.linear",
        parameters={"regularization": POSITIVE, "comparable": Flag()},
        learned=_LINEAR,
        takes="m",
    ),
}
