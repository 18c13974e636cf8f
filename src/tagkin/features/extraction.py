"""Extract features from files; read and process every photograph once."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tagkin.errors import InvalidInput
from tagkin.features.backbone import Backbone
from tagkin.features.backbone_names import get_backbone
from tagkin.features.cache import FeatureCache
from tagkin.features.extraction_run import Extraction, ExtractionRun
from tagkin.progress import Progress, silent

__all__ = ["extract"]


def extract(
    files: Sequence[str | os.PathLike[str]],
    backbone: Backbone | str,
    *,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Extract features of photographs, on all cores.

    An unreadable file becomes a failure in the result, and the run continues. Features are
    cached immediately, so an interrupted run can continue later. The result does not depend on
    the number of cores or on the cache.

    Where a camera has written a preview that is large enough, it is decoded instead of the
    photograph (`tagkin.images.previews` has the rule). Some files are decoded both ways, and if
    their features differ, all files of this camera are decoded in full. ``TAGKIN_PREVIEWS=no``
    switches previews off.

    Parameters
    ----------
    files : sequence of paths
    backbone : Backbone or its name
    cache : FeatureCache or None
    progress : callable or None
        Called with the name of the step, the number of files done and the total.
    """
    if isinstance(files, (str, bytes, os.PathLike)):
        raise InvalidInput(f"files must be a list of paths; found one path, {os.fspath(files)!r}.")
    if isinstance(backbone, str):
        backbone = get_backbone(backbone)
    run = ExtractionRun([os.fspath(file) for file in files], backbone, cache)
    report = progress or silent
    total, done = len(run.files), 0
    unknown = run.take_from_cache()
    if len(unknown) < total:
        done = total - len(unknown)
        report("Reading photographs", done, total)
    if unknown:
        from tagkin.features.processing import process_files  # the cache has most photographs

        for n_done, n_again in process_files(run, unknown):
            done, total = done + n_done, total + n_again
            report("Reading photographs", done, total)
    return run.result()
