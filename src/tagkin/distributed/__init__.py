"""Feature extraction, learning and search on many machines, with a Dask cluster.

Needs the extra ``dask``. `extract` turns photographs into features, `fit_space` learns a space from
features and tags, `transform` computes embeddings, and `nearest` finds neighbours among them.
Returned Dask arrays are lazy: `compute` or Dask itself computes them. Results equal those of a
single machine, up to rounding. The default of every `client` is Dask's current client.
"""

from tagkin.distributed.cluster import compute, connect
from tagkin.distributed.extraction import extract
from tagkin.distributed.search import nearest
from tagkin.distributed.spaces import fit_space, transform

__all__ = [
    "compute",
    "connect",
    "extract",
    "fit_space",
    "nearest",
    "transform",
]
