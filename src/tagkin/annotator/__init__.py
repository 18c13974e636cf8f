"""Photographs or features and tags in, suggestions with evidence out.

The modules, in reading order:

- `annotator`: `Annotator`, for photographs
- `feature_annotator`: `FeatureAnnotator`, for features
- `suggestions`: the records that both return, for images and for photographs

Input:

- `photograph_input`: photographs and tags as a caller may pass them
- `photograph_reader`: features of photographs, by a backbone and a cache
- `label_input`: labels as a caller may pass them
- `fit_input`: all that a fit takes, as a problem
- `series`: images that are held out together

Learning:

- `problem`: the `Problem`
- `part`: the part of it that has held-out scores
- `recipe`: the configuration of a fit
- `learning`: `learn` makes a `Model` of a `Problem`, step by step
- `hold_out`: held-out scores, by spaces without the images of a fold, and their confidences
- `incomplete`: images of which only some labels are known
- `naming`: scores of images by the names of labels
- `model`: the `Model`, the record of what was learned, and its description

Using a model:

- `suggesting`: labels for images
- `name_suggestions`: tags that no photograph has yet
- `audit`: labels that seem wrong or missing
- `extending`: more images, and other labels of known ones, without a new fit
- `quality`: measurements of suggestions
"""

from typing import TYPE_CHECKING

from tagkin.annotator.annotator import Annotator
from tagkin.annotator.suggestions import (
    Finding,
    Kin,
    LabelFinding,
    LabelSuggestion,
    PhotoSuggestions,
    Similar,
    SimilarImage,
    Support,
    TagSuggestion,
    suggestion_columns,
)
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.annotator.audit import audit_labels as audit_labels
    from tagkin.annotator.feature_annotator import FeatureAnnotator as FeatureAnnotator
    from tagkin.annotator.quality import OperatingPoint as OperatingPoint
    from tagkin.annotator.quality import Quality as Quality

__all__ = [
    "Annotator",
    "FeatureAnnotator",
    "Finding",
    "Kin",
    "LabelFinding",
    "LabelSuggestion",
    "OperatingPoint",
    "PhotoSuggestions",
    "Quality",
    "Similar",
    "SimilarImage",
    "Support",
    "TagSuggestion",
    "audit_labels",
    "suggestion_columns",
]

# Imported at first use, because suggesting needs neither estimators nor measurements.
_HOMES = {
    "FeatureAnnotator": "feature_annotator",
    "Model": "model",
    "OperatingPoint": "quality",
    "Quality": "quality",
    "audit_labels": "audit",
}
__getattr__ = lazy_names(__name__, _HOMES)
