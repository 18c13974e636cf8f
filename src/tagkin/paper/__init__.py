"""What only the paper needs: its other methods, denoising and text views. No command uses them.

All of them are estimators or parts of estimators, and go with `tagkin.SemanticSpace`:

- `voting`, `tagprop`, `linear_methods`: methods that transfer labels; `voting_records` has their
  records, `likelihood` and `pairs` the mathematics of TagProp
- `denoiser`: noisy tags smoothed over visual neighbours
- `exp_chi2`, `chi2_view`: the exp-χ² kernel of tags, and its text view
- `ontology`, `word_view`: text views by the meanings of words, which `wordnet` and `word_vectors`
  read from their files
"""

from tagkin.paper.chi2_view import Chi2View
from tagkin.paper.denoiser import TagDenoiser
from tagkin.paper.exp_chi2 import ExpChi2
from tagkin.paper.linear_methods import LinearSVM, RidgeTransfer
from tagkin.paper.ontology import OntologyView
from tagkin.paper.tagprop import TagProp
from tagkin.paper.voting import NeighborVoting, TagRelevance, TwoPassKNN
from tagkin.paper.word_vectors import WordVectors
from tagkin.paper.word_view import WordVectorView
from tagkin.paper.wordnet import WordNet

__all__ = [
    "Chi2View",
    "ExpChi2",
    "LinearSVM",
    "NeighborVoting",
    "OntologyView",
    "RidgeTransfer",
    "TagDenoiser",
    "TagProp",
    "TagRelevance",
    "TwoPassKNN",
    "WordNet",
    "WordVectorView",
    "WordVectors",
]
