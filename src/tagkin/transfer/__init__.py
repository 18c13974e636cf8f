"""Methods that transfer labels from labelled images to new images.

A method is an estimator. Fitting it makes a record, which needs no scikit-learn: `KinReadout` makes
`KinVotes`. The modules:

- `votes`, `voting_records`, `kin_votes`, `readout`: records
- `evidence`: suggestions with their evidence
- `neighbor_lists`: lists of neighbours and their weights
- `label_transfer`, `neighbor_transfer`: base classes of the estimators
- `voting`, `tagprop`, `linear_methods`, `logistic_readout`, `kin_readout`: estimators
- `likelihood`, `pairs`, `logistic`, `logistic_features`: the mathematics of
  learning
"""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names
from tagkin.transfer.evidence import Evidence, Suggestion

if TYPE_CHECKING:
    from tagkin.transfer.kin_readout import KinReadout as KinReadout
    from tagkin.transfer.label_transfer import LabelTransfer as LabelTransfer
    from tagkin.transfer.linear_methods import LinearSVM as LinearSVM
    from tagkin.transfer.linear_methods import RidgeTransfer as RidgeTransfer
    from tagkin.transfer.logistic_readout import LogisticReadout as LogisticReadout
    from tagkin.transfer.neighbor_transfer import NeighborTransfer as NeighborTransfer
    from tagkin.transfer.tagprop import TagProp as TagProp
    from tagkin.transfer.voting import NeighborVoting as NeighborVoting
    from tagkin.transfer.voting import TagRelevance as TagRelevance
    from tagkin.transfer.voting import TwoPassKNN as TwoPassKNN

__all__ = [
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
]

# Estimators are imported at first use, because they import scikit-learn.
_HOMES = {
    "CountVotes": "voting_records",
    "KinReadout": "kin_readout",
    "LabelTransfer": "label_transfer",
    "LinearSVM": "linear_methods",
    "LogisticReadout": "logistic_readout",
    "NeighborTransfer": "neighbor_transfer",
    "NeighborVoting": "voting",
    "RelevanceVotes": "voting_records",
    "RidgeTransfer": "linear_methods",
    "TagProp": "tagprop",
    "TagPropVotes": "voting_records",
    "TagRelevance": "voting",
    "TwoPassKNN": "voting",
    "TwoPassVotes": "voting_records",
}
__getattr__ = lazy_names(__name__, _HOMES)
