"""The same work on many machines, through the user's own Dask cluster.

Needs the extra ``dask``. Photographs become features (`extract`, `extract_to_parquet`),
features and tags a space (`fit_space`), the space places (`transform`), places kin (`nearest`);
`denoise` smooths tags. What comes out as a Dask array is not computed before it is asked for, by
`compute` or by Dask's own means. Results are those of one machine, up to rounding.
"""

from tagkin.distributed.cluster import compute, connect
from tagkin.distributed.denoising import denoise
from tagkin.distributed.extraction import extract
from tagkin.distributed.parquet import extract_to_parquet, read_parquet
from tagkin.distributed.search import nearest
from tagkin.distributed.spaces import fit_space, transform

__all__ = [
    "compute",
    "connect",
    "denoise",
    "extract",
    "extract_to_parquet",
    "fit_space",
    "nearest",
    "read_parquet",
    "transform",
]
