"""Learn from the tags that are on a collection of images, and suggest tags for the rest."""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from tagkin.version import __version__ as __version__

if TYPE_CHECKING:
    from tagkin.annotator import Annotator as Annotator
    from tagkin.annotator import FeatureAnnotator as FeatureAnnotator
    from tagkin.annotator import audit_labels as audit_labels
    from tagkin.annotator import suggestion_columns as suggestion_columns
    from tagkin.arrays import memory_budget as memory_budget
    from tagkin.calibration import LabelCalibrator as LabelCalibrator
    from tagkin.evaluation import evaluate as evaluate
    from tagkin.labels import Vocabulary as Vocabulary
    from tagkin.space import LandmarkMap as LandmarkMap
    from tagkin.space import SemanticSpace as SemanticSpace
    from tagkin.storage import load as load
    from tagkin.storage import save as save
    from tagkin.transfer import KinReadout as KinReadout
    from tagkin.transfer import LogisticReadout as LogisticReadout


# Loaded at first use: importing scikit-learn and SciPy takes over a second.
_HOMES = {
    "Annotator": "tagkin.annotator",
    "FeatureAnnotator": "tagkin.annotator",
    "KinReadout": "tagkin.transfer",
    "LabelCalibrator": "tagkin.calibration",
    "LandmarkMap": "tagkin.space",
    "LogisticReadout": "tagkin.transfer",
    "SemanticSpace": "tagkin.space",
    "Vocabulary": "tagkin.labels",
    "audit_labels": "tagkin.annotator",
    "evaluate": "tagkin.evaluation",
    "load": "tagkin.storage",
    "memory_budget": "tagkin.arrays",
    "save": "tagkin.storage",
    "suggestion_columns": "tagkin.annotator",
}

_MODULES = {module.name for module in iter_modules(__path__)} - {"__main__"}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:  # for type checkers, a submodule may be anything
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"tagkin.{name}")
    else:
        raise AttributeError(f"module 'tagkin' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
