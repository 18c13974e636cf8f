"""What a model may hold: every class that is stored, and what of it. No other class is loaded.

Dimensions go by one letter wherever a shape is declared: N images, D labels, d features of an
image, m dimensions of its embedding, r landmarks, q text features. Longer names are sizes that may
be 0. An object that holds another says which of its own dimensions the other's are.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tagkin.storage.fields import (
    Columns,
    Counts,
    Dim,
    Either,
    FileNames,
    Flag,
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
from tagkin.storage.forms import STORED, Part, Parts, Stored, stored_form
from tagkin.storage.space_forms import (
    ANY,
    METRIC,
    OUTPUT,
    POSITIVE,
    SEED,
    SHARE,
    SPACE,
    TRANSFER,
    features,
)

__all__ = ["STORED", "class_named", "is_resource", "stored_form"]

_METHODS = "KinReadout NeighborVoting TagProp TagRelevance TwoPassKNN"

# --- steps of scikit-learn before ours ----------------------------------------------------

_STEPS = {
    "StandardScaler": Stored(
        "sklearn.preprocessing",
        parameters={"copy": Flag(), "with_mean": Flag(), "with_std": Flag(), **OUTPUT},
        learned={
            **features("d"),
            "n_samples_seen_": Value(low=1),
            "mean_": Floats("d").or_none(),
            "var_": Floats("d", low=0).or_none(),
            "scale_": Floats("d", above=0).or_none(),
        },
        takes="d",
        gives="d",
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
            "_words": Table(Text()),
            "_above": Table(Levels()),
            "n_images_": Whole(),
            "unknown_": Counts(),
        },
        checks=("check_stored",),
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
            "joint_precision_": Floats(201),
            "n_first_": Whole().or_absent(),
            "later_link_scores_": Floats("j", ascending=True).or_absent(),
            "later_link_log_odds_": Floats("j").or_absent(),
            "later_level_scores_": Floats("i", ascending=True).or_absent(),
            "later_level_log_odds_": Floats("i").or_absent(),
            "later_joint_precision_": Floats(201).or_absent(),
        },
        checks=("check_stored",),
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
    "UnannotatedLabels": Stored(
        "tagkin.calibration.unannotated",
        learned={
            "n_labels_": Dim("D"),
            "offset_": Value(),
            "offsets_": Floats("D"),
            "n_accepted_": Whole(),
            "n_rejected_": Whole(),
        },
    ),
    "NameTable": Stored(
        "tagkin.tag_meanings.meanings",
        learned={
            "rows": Either(Sparse("D", "C", low=-1e30), Floats("D", "C")),
            "kinds": Indices("D", below=3),
            "breadths": Floats("D"),
        },
    ),
    "NameWeights": Stored(
        "tagkin.tag_meanings.weights",
        learned={
            "center_": Value(),
            "scale_": POSITIVE,
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
            "blend": SHARE,
            "n_neighbors": Whole(1),
            "narrowing": POSITIVE,
            "view": Text(),
            "score": Value(nan=True),
        },
    ),
    "TagDenoiser": Stored(
        "tagkin.denoising.denoiser",
        parameters={
            "n_neighbors": Whole(1),
            "scale": ANY,
            "include_self": Flag(),
            "blend": ANY,
            "metric": METRIC,
            "min_weight": ANY,
            "space": ANY,
            "random_state": SEED,
            "passed_on": ANY,
            **OUTPUT,
        },
        learned={
            "index_": Part("ExactNeighbors", N="N", m="d"),
            "tags_": Sparse("N", "D"),
            "trials_": Parts("Setting"),
            "blend_": SHARE,
            "view_": Text(),
            "n_neighbors_": Whole(1),
            "scale_": Value(low=0),
            "_label_names": Texts("D").or_none().or_absent(),
            **features("d"),
        },
    ),
}

# --- annotators --------------------------------------------------------------------------

_ANNOTATORS = {
    "FeatureAnnotator": Stored(
        "tagkin.annotator.feature_annotator",
        parameters={
            "space": ANY,
            "method": ANY,
            "denoise": Flag(),
            "tune": Flag(),
            "vocabulary": ANY,
            "random_state": SEED,
            "prior": ANY,
        },
        learned={
            "space_": Part("SemanticSpace", d="d", m="m"),
            "method_": Part(_METHODS, needs=("index_",), N="N", D="D", m="m"),
            "calibrator_": Part("LabelCalibrator", D="D"),
            # labels that came later have no rates
            "errors_": Part("LabelErrors", D="judged"),
            "held_out_": Sparse("N", "D", high=1, within="judged"),
            "rejected_": Sparse("N", "D"),
            "names_": Part("LearnedNames", D="D").or_none(),
            "unsaid_": Part("UnannotatedLabels", D="D").or_none(),
            "vocabulary_": Part("Vocabulary", D="D").or_none(),
            "column_names_": Texts("D").or_none(),
            "tags_": TextLists("N").or_none(),
            "groups_": Indices("N"),
            "blend_": SHARE,
            **features("d"),
        },
        at_most=(("judged", "D"),),
        apart=("held_out_",),
        takes="d",
    ),
    "Annotator": Stored(
        "tagkin.annotator.annotator",
        parameters={
            "backbone": Text(),
            "space": ANY,
            "method": ANY,
            "denoise": Flag(),
            "min_count": Whole(1),
            "tune": Flag(),
            "cache": Flag().or_none(),
            "random_state": SEED,
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
            "root_name_": Text(r"[^/\\\0]*"),
            "fingerprint_": Text(),
            "names_note_": Text(),
            "tags_from_": Text(),
        },
        left_out=("failures_", "paths_", "_opened", "_opened_prior"),
        told_its_folder=True,
        summarized=True,
    ),
}

STORED.update(SPACE | TRANSFER | _LABELS | _ANNOTATORS | _STEPS)

# Read from files of this machine. A model goes without them: its fitted state has what was taken.
_RESOURCES = {
    "ClassPrior": "tagkin.tag_meanings.prior",
    "FeatureCache": "tagkin.features.cache",
    "TextPrior": "tagkin.tag_meanings.prior",
    "WordNet": "tagkin.lexicons.wordnet",
}


def is_resource(value: Any) -> bool:
    """Whether a model goes without this object."""
    return _RESOURCES.get(type(value).__name__) == type(value).__module__


def class_named(name: str) -> tuple[type, Stored] | None:
    """The class that a model calls by this name, and how it is stored; None for any other."""
    if name not in STORED:
        return None
    form = STORED[name]
    return getattr(import_module(form.module), name), form
