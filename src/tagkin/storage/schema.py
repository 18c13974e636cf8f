"""What a model may hold: every class that is stored, and what of it. No other class is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

__all__ = ["STORED", "Gathered", "Stored", "class_named", "is_resource", "stored_form"]


@dataclass(frozen=True)
class Gathered:
    """Attributes that were an object's own before another object came to hold them."""

    class_name: str
    """The class that holds them now; it has parameters of the same names, too."""
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Stored:
    """How objects of one class are stored. The class's name is part of the format."""

    module: str
    """Where the class lives."""
    left_out: tuple[str, ...] = ()
    """Attributes that are made again from the rest, on the host."""
    on_host: tuple[str, ...] = ()
    """Small arrays that are used on the host, whatever the device of the others."""
    added: tuple[str, ...] = ()
    """Parameters that version 0.1 did not have; its models get the defaults."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Attributes of version 0.1, and what they are called now."""
    gathered: Mapping[str, Gathered] = field(default_factory=dict)
    """Attributes that stand for several of an earlier version."""
    told_its_folder: bool = False
    """Whether `saved_to(folder)` and `opened_from(folder)` are called."""


STORED = {
    "Annotator": Stored(
        "tagkin.annotator.annotator",
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
    ),
    "ArcCosine": Stored("tagkin.kernels.arc_cosine"),
    "Chi2View": Stored("tagkin.space.chi2_view"),
    "ExactNeighbors": Stored("tagkin.neighbors.exact"),
    "ExpChi2": Stored("tagkin.kernels.exp_chi2"),
    "FaissNeighbors": Stored(
        "tagkin.neighbors.faiss",
        left_out=("_index", "_refining"),
    ),
    "FeatureAnnotator": Stored("tagkin.annotator.feature_annotator"),
    "IndicatorView": Stored("tagkin.space.views"),
    "KinReadout": Stored(
        "tagkin.transfer.kin_readout",
        on_host=("offsets_", "readout_weights_", "vote_weights_"),
    ),
    "LabelCalibrator": Stored("tagkin.calibration.calibrator"),
    "LabelErrors": Stored("tagkin.calibration.label_errors"),
    "LandmarkMap": Stored("tagkin.space.landmarks"),
    "Landmarks": Stored("tagkin.space.landmarks"),
    "Linear": Stored("tagkin.kernels.linear"),
    "LearnedNames": Stored("tagkin.annotator.naming"),
    "LinearSVM": Stored("tagkin.transfer.linear"),
    "LogisticReadout": Stored(
        "tagkin.transfer.readout",
        on_host=("coef_", "intercept_"),
    ),
    "Moments": Stored("tagkin.space.moments"),
    "NameTable": Stored("tagkin.names.meanings"),
    "NameWeights": Stored("tagkin.names.weights"),
    "NeighborVoting": Stored("tagkin.transfer.voting"),
    "OntologyView": Stored("tagkin.labels.ontology"),
    "Projection": Stored("tagkin.space.solution"),
    "RBF": Stored("tagkin.kernels.rbf"),
    "RidgeTransfer": Stored("tagkin.transfer.linear"),
    "SemanticSpace": Stored("tagkin.space.semantic_space"),
    "Setting": Stored("tagkin.denoising.trials"),
    "TagDenoiser": Stored(
        "tagkin.denoising.denoiser",
        added=("space", "passed_on"),
    ),
    "TagProp": Stored(
        "tagkin.transfer.tagprop",
        on_host=("offsets_", "rank_weights_", "slopes_"),
    ),
    "TagRelevance": Stored("tagkin.transfer.voting"),
    "TwoPassKNN": Stored(
        "tagkin.transfer.twopass",
        on_host=("dimension_weights_",),
    ),
    "Vocabulary": Stored(
        "tagkin.labels.vocabulary",
        added=("merge_levels", "merge_plurals", "exclude", "leaf_only"),
    ),
    "WordVectorView": Stored("tagkin.labels.word_view"),
    "WordVectors": Stored("tagkin.lexicons.word_vectors"),
}

# Read from files of this machine. A model goes without them: its fitted state has what was taken.
_RESOURCES = {
    "ClassPrior": "tagkin.names.prior",
    "FeatureCache": "tagkin.features.cache",
    "TextPrior": "tagkin.names.prior",
    "WordNet": "tagkin.lexicons.wordnet",
}

# What version 0.1 called a class.
_FORMER_NAMES = {"Recipe": "Setting"}


def stored_form(value: Any) -> Stored | None:
    """How an object is stored; None where its class is not one of those above."""
    form = STORED.get(type(value).__name__)
    return form if form and form.module == type(value).__module__ else None


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
