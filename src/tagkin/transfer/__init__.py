"""Methods that transfer labels from labelled images to new images.

A method is an estimator. Fitting it makes a record, which needs no scikit-learn: `KinReadout` makes
`KinVotes`. The modules:

- `votes`, `kin_votes`, `readout`: records
- `evidence`: suggestions with their evidence
- `neighbor_lists`: lists of neighbours and their weights
- `label_transfer`, `neighbor_transfer`: base classes of the estimators
- `logistic_readout`, `kin_readout`: estimators
- `logistic`, `logistic_features`: the mathematics of learning
- `occasions`: votes of photographs near in time, place or folders

`tagkin.paper` has the other methods of the paper.
"""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names
from tagkin.transfer.evidence import Evidence, Suggestion

if TYPE_CHECKING:
    from tagkin.transfer.kin_readout import KinReadout as KinReadout
    from tagkin.transfer.label_transfer import LabelTransfer as LabelTransfer
    from tagkin.transfer.logistic_readout import LogisticReadout as LogisticReadout
    from tagkin.transfer.neighbor_transfer import NeighborTransfer as NeighborTransfer

__all__ = [
    "Evidence",
    "KinReadout",
    "LabelTransfer",
    "LogisticReadout",
    "NeighborTransfer",
    "Suggestion",
]

# Estimators are imported at first use, because they import scikit-learn.
_HOMES = {
    "KinReadout": "kin_readout",
    "LabelTransfer": "label_transfer",
    "LogisticReadout": "logistic_readout",
    "NeighborTransfer": "neighbor_transfer",
}
__getattr__ = lazy_names(__name__, _HOMES)
