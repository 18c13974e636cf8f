"""What a model may hold: every class that is stored, and what of it. No other class is loaded.

Dimensions go by one letter wherever a shape is declared: N images, D labels, d features of an
image, m dimensions of its embedding, r landmarks, q text features. Longer names are sizes that may
be 0. An object that holds another says which of its own dimensions the other's are.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tagkin.storage.fields import (
    Choice,
    Columns,
    Counts,
    Dim,
    Either,
    Field,
    FileNames,
    Flag,
    Flags,
    Floats,
    Indices,
    Levels,
    Sparse,
    Table,
    Text,
    TextLists,
    Texts,
    Value,
    Whole,
)
from tagkin.storage.forms import STORED, Gathered, Parameter, Part, Parts, Stored, stored_form

__all__ = ["STORED", "class_named", "is_resource", "stored_form"]

_ANY, _POSITIVE = Parameter(), Value(above=0)
_SHARE = Value(low=0, high=1)
_METRIC = Choice(("cosine", "euclidean"))
_SEED = Whole(high=2**32 - 1).or_none()
_KERNELS = "ArcCosine ExpChi2 Linear RBF"
_VIEWS = "Chi2View IndicatorView OntologyView WordVectorView"
_METHODS = "KinReadout NeighborVoting TagProp TagRelevance TwoPassKNN"


def _features(size: str) -> dict[str, Field]:
    """How many features a fitted estimator takes, and what they are called."""
    names = Texts(size).or_absent()
    return {"n_features_in_": Dim(size).or_absent(), "feature_names_in_": names}


# --- kernels and the space ---------------------------------------------------------------

_SPACE = {
    "ArcCosine": Stored(
        "tagkin.kernels.arc_cosine",
        learned={"order": Whole(high=2), "normalized": Flag()},
    ),
    "Linear": Stored("tagkin.kernels.linear"),
    "RBF": Stored("tagkin.kernels.rbf", learned={"gamma": _POSITIVE.or_none()}),
    "ExpChi2": Stored("tagkin.kernels.exp_chi2", learned={"scale": _POSITIVE.or_none()}),
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
            "kernel": _ANY,
            "n_landmarks": Whole(1),
            "selection": _ANY,
            "random_state": _SEED,
        },
        learned={
            "landmarks_": Part("Landmarks", r="r", d="d"),
            "factor_": Floats("r", "r", triangular=True),
            **_features("d"),
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
            "correlations": Floats("m"),
            "coefficients": Floats("r", "m"),
            "kernel_mean": Floats("r"),
            "text_mean": Floats("q"),
            "readout": Floats("m", "q"),
        },
    ),
    "SemanticSpace": Stored(
        "tagkin.space.semantic_space",
        parameters={
            "regularization": _ANY,
            "kernel": _ANY,
            "text_view": _ANY,
            "n_landmarks": Whole(1),
            "selection": _ANY,
            "n_components": _ANY,
            "scaling": _ANY,
            "random_state": _SEED,
        },
        learned={
            "text_view_": Part(_VIEWS, q="q"),
            "landmarks_": Part("Landmarks", r="r", d="d"),
            "_moments": Part("Moments", r="r", q="q").or_none(),
            # of an exact fit, in which every image is a landmark
            "_exact_text": Either(Sparse("r", "q", low=-1e30), Floats("r", "q")).or_none(),
            "_solution": Part("Projection", r="r", m="m", q="q").or_none(),
            **_features("d"),
        },
        checks=("check_parameters",),
        some_of=(("_solution", "_moments"),),
        takes="d",
        gives="m",
    ),
    "IndicatorView": Stored("tagkin.space.views", learned={"n_labels_": Dim("q")}),
    "Chi2View": Stored(
        "tagkin.space.chi2_view",
        parameters={"n_landmarks": Whole(1), "random_state": _SEED},
        learned={
            "map_": Part("LandmarkMap", r="q"),
            "scale_": _POSITIVE,
            "scale_error_": Value(low=0),
        },
    ),
    "OntologyView": Stored(
        "tagkin.labels.ontology",
        parameters={"names": _ANY, "wordnet": _ANY, "senses": Choice(("best", "first"))},
        learned={
            "factor_": Floats("D", "q"),
            "clipped_": Value(),
            "unknown_": Texts(),
            "unattested_": Texts(),
        },
    ),
    "WordVectorView": Stored(
        "tagkin.labels.word_view",
        parameters={"names": _ANY, "vectors": _ANY},
        learned={
            "vectors_": Floats("D", "q"),
            "known_": Flags("D"),
            "coverage_": _SHARE,
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
    **_features("m"),
}
_BY_NEIGHBORS: dict[str, Field] = {
    "labels_": Sparse("N", "D"),
    "index_": Part("ExactNeighbors FaissNeighbors", N="N", m="m").or_none(),
    **_OF_EVERY_METHOD,
}
_VOTING: dict[str, Field] = {
    "n_neighbors": Whole(1),
    "metric": _METRIC,
    "index": _ANY,
}
_LINEAR: dict[str, Field] = {
    "coef_": Floats("m", "D"),
    "intercept_": Floats("D"),
    **_OF_EVERY_METHOD,
}

_TRANSFER = {
    "ExactNeighbors": Stored(
        "tagkin.neighbors.exact",
        parameters={"metric": _METRIC},
        learned={"points_": Floats("N", "m"), "_center": Floats("m").or_none()},
    ),
    "FaissNeighbors": Stored(
        "tagkin.neighbors.faiss",
        parameters={
            # an index of FAISS's own is made by them: nothing that asks for very much
            "factory": Text(r"(?!.*\d{6})[A-Za-z0-9,_()]{1,80}"),
            "search": Text(r"(?!.*\d{6})[A-Za-z0-9,_=.]{0,120}"),
            "metric": _METRIC,
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
        parameters={**_VOTING, "weights": _ANY, "sigmoids": Flag(), "monotone": Flag()},
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
            "decay": _ANY,
            "form": _ANY,
            "label_maximum": Flag(),
            "metric_learning": Flag(),
            "metric": _METRIC,
            "random_state": _SEED,
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
            "temperature": _POSITIVE,
            "regularization": _POSITIVE,
            "n_landmarks": Whole(1),
            "random_state": _SEED,
        },
        learned={
            **_BY_NEIGHBORS,
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
            "regularization": _POSITIVE,
            "n_landmarks": Whole(1),
            "tol": _POSITIVE,
            "random_state": _SEED,
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
        parameters={"C": _POSITIVE, "loss": Choice(("least-squares", "squared-hinge"))},
        learned=_LINEAR,
        takes="m",
    ),
    "RidgeTransfer": Stored(
        "tagkin.transfer.linear",
        parameters={"regularization": _POSITIVE},
        learned=_LINEAR,
        takes="m",
    ),
}

# --- labels, confidences, names ----------------------------------------------------------

_LABELS = {
    "Vocabulary": Stored(
        "tagkin.labels.vocabulary",
        parameters={
            "min_count": Whole(1),
            "aliases": Table(Text()).or_none(),
            "separator": Either(Text(), Texts()).or_none(),
            "imply_parents": Flag(),
            "merge_levels": Flag(),
            "merge_plurals": Flag(),
            "exclude": Texts().or_none(),
            "leaf_only": Flag(),
        },
        learned={
            "_images": Counts(),
            "_spellings": Table(Counts(some=True)),
            "_columns": Columns("D"),
            "_names": Texts("D"),
            "_words": Table(Text()).or_absent(),
            "_above": Table(Levels()).or_absent(),
            "n_images_": Whole(),
            "unknown_": Counts(),
        },
        checks=("check_stored",),
        added=("merge_levels", "merge_plurals", "exclude", "leaf_only"),
    ),
    "LabelCalibrator": Stored(
        "tagkin.calibration.calibrator",
        learned={
            "n_images_": Whole(),
            "n_labels_": Dim("D"),
            "link_scores_": Floats("k", ascending=True),
            "link_log_odds_": Floats("k"),
            "slopes_": Floats("D"),
            "intercepts_": Floats("D"),
            "cut_scores_": Floats("D", "G", endless=True),
            "cut_precision_": Floats("D", "G"),
            "joint_precision_": Floats(201).or_absent(),
        },
    ),
    "LabelErrors": Stored(
        "tagkin.calibration.label_errors",
        learned={
            "n_labels_": Dim("D"),
            "slopes_": Floats("D"),
            "intercepts_": Floats("D"),
            "wrong_rates_": Floats("D", low=0, high=1),
            "missing_rates_": Floats("D", low=0, high=1),
            "wrong_share_": Value(low=0),
            "missing_share_": Value(low=0),
        },
    ),
    "NameTable": Stored(
        "tagkin.names.meanings",
        learned={
            "rows": Either(Sparse("D", "C", low=-1e30), Floats("D", "C")),
            "kinds": Indices("D", below=3),
            "breadths": Floats("D"),
        },
    ),
    "NameWeights": Stored(
        "tagkin.names.weights",
        learned={
            "center_": Value(),
            "scale_": Either(Floats(1, above=0), _POSITIVE),  # once an array
            "prior_center_": Floats("D"),
            "prior_scale_": Floats("D", above=0),
            "slopes_": Floats("D"),
            "intercepts_": Floats("D"),
            "weights_": Floats("D"),
            "expected_": Floats(3, 3),
        },
    ),
    "LearnedNames": Stored(
        "tagkin.annotator.naming",
        learned={
            "table": Part("NameTable", D="D"),
            "weights": Part("NameWeights", D="D"),
        },
    ),
    "Setting": Stored(
        "tagkin.denoising.trials",
        learned={
            "blend": _SHARE,
            "n_neighbors": Whole(1),
            "narrowing": _POSITIVE,
            "view": Text(),
            "score": Value(nan=True),
        },
    ),
    "TagDenoiser": Stored(
        "tagkin.denoising.denoiser",
        parameters={
            "n_neighbors": Whole(1),
            "scale": _ANY,
            "include_self": Flag(),
            "blend": _ANY,
            "metric": _METRIC,
            "min_weight": _ANY,
            "space": _ANY,
            "random_state": _SEED,
            "passed_on": _ANY,
        },
        learned={
            "index_": Part("ExactNeighbors", N="N", m="d"),
            "tags_": Sparse("N", "D"),
            "trials_": Parts("Setting"),
            "blend_": _SHARE,
            "view_": Text(),
            "n_neighbors_": Whole(1),
            "scale_": Value(low=0),
            **_features("d"),
        },
        added=("space", "passed_on"),
    ),
}

# --- annotators --------------------------------------------------------------------------

_ANNOTATORS = {
    "FeatureAnnotator": Stored(
        "tagkin.annotator.feature_annotator",
        parameters={
            "space": _ANY,
            "method": _ANY,
            "denoise": Flag(),
            "tune": Flag(),
            "vocabulary": _ANY,
            "random_state": _SEED,
            "prior": _ANY,
        },
        learned={
            "space_": Part("SemanticSpace", d="d", m="m"),
            "method_": Part(_METHODS, needs=("index_",), N="N", D="D", m="m"),
            "calibrator_": Part("LabelCalibrator", D="D"),
            # labels that came later have no rates
            "errors_": Part("LabelErrors", D="judged").or_absent(),
            "held_out_": Sparse("N", "D", high=1, within="judged"),
            "rejected_": Sparse("N", "D").or_absent(),
            "names_": Part("LearnedNames", D="D").or_none().or_absent(),
            "vocabulary_": Part("Vocabulary", D="D").or_none(),
            "column_names_": Texts("D").or_none().or_absent(),
            "tags_": TextLists("N").or_none(),
            "groups_": Indices("N").or_absent(),
            "blend_": _SHARE,
            **_features("d"),
        },
        at_most=(("judged", "D"),),
        apart=("held_out_",),
        takes="d",
    ),
    "Annotator": Stored(
        "tagkin.annotator.annotator",
        parameters={
            "backbone": Text(),
            "space": _ANY,
            "method": _ANY,
            "denoise": Flag(),
            "min_count": Whole(1),
            "tune": Flag(),
            "cache": Flag().or_none(),
            "random_state": _SEED,
            "aliases": Table(Text()).or_none(),
            "merge_plurals": Flag(),
            "exclude": Texts().or_none(),
            "leaf_only": Flag(),
            "names": Flag(),
        },
        learned={
            "estimator_": Part("FeatureAnnotator", needs=("tags_", "vocabulary_"), N="N"),
            "files_": FileNames("N"),
            "digests_": Texts("N"),
            "root_name_": Text(r"[^/\\\0]*").or_absent(),
            "fingerprint_": Text(),
            "names_note_": Text().or_absent(),
            "tags_from_": Text().or_absent(),
        },
        left_out=("failures_", "paths_", "_opened", "_opened_prior"),
        added=("aliases", "merge_plurals", "exclude", "leaf_only", "names"),
        gathered={
            "estimator_": Gathered(
                "FeatureAnnotator",
                (
                    "blend_",
                    "calibrator_",
                    "held_out_",
                    "method_",
                    "space_",
                    "tags_",
                    "vocabulary_",
                ),
            )
        },
        told_its_folder=True,
        summarized=True,
    ),
}

STORED.update(_SPACE | _TRANSFER | _LABELS | _ANNOTATORS)

# Read from files of this machine. A model goes without them: its fitted state has what was taken.
_RESOURCES = {
    "ClassPrior": "tagkin.names.prior",
    "FeatureCache": "tagkin.features.cache",
    "TextPrior": "tagkin.names.prior",
    "WordNet": "tagkin.lexicons.wordnet",
}

# What version 0.1 called a class.
_FORMER_NAMES = {"Recipe": "Setting"}


def is_resource(value: Any) -> bool:
    """Whether a model goes without this object."""
    return _RESOURCES.get(type(value).__name__) == type(value).__module__


def class_named(name: str) -> tuple[type, Stored] | None:
    """The class that a model calls by this name, and how it is stored; None for any other."""
    name = _FORMER_NAMES.get(name, name)
    if name not in STORED:
        return None
    form = STORED[name]
    return getattr(import_module(form.module), name), form
