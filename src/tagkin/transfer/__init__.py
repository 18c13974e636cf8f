"""Methods that transfer labels from labelled images to new images."""

from tagkin.transfer.base import LabelTransfer, Suggestion
from tagkin.transfer.evidence import Evidence
from tagkin.transfer.kin_readout import Components, KinReadout
from tagkin.transfer.linear import LinearSVM, RidgeTransfer
from tagkin.transfer.neighbor_transfer import NeighborTransfer
from tagkin.transfer.pipelines import explain, suggest
from tagkin.transfer.readout import LogisticReadout
from tagkin.transfer.tagprop import TagProp
from tagkin.transfer.twopass import TwoPassKNN
from tagkin.transfer.voting import NeighborVoting, TagRelevance

__all__ = [
    "Components",
    "Evidence",
    "KinReadout",
    "LabelTransfer",
    "LinearSVM",
    "LogisticReadout",
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
