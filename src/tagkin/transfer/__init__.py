"""Label transfer: from images with labels to labels for images."""

from tagkin.transfer.base import LabelTransfer, Suggestion
from tagkin.transfer.evidence import Evidence
from tagkin.transfer.linear import LinearSVM, RidgeTransfer
from tagkin.transfer.neighbor_transfer import NeighborTransfer
from tagkin.transfer.pipelines import explain, suggest
from tagkin.transfer.tagprop import TagProp
from tagkin.transfer.twopass import TwoPassKNN
from tagkin.transfer.voting import NeighborVoting, TagRelevance

__all__ = [
    "Evidence",
    "LabelTransfer",
    "LinearSVM",
    "NeighborTransfer",
    "NeighborVoting",
    "RidgeTransfer",
    "Suggestion",
    "TagProp",
    "TagRelevance",
    "TwoPassKNN",
    "explain",
    "suggest",
]
