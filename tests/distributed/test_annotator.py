"""An annotator whose photographs are read on a cluster."""

import json
import os
from functools import partial

import numpy as np
import pytest
from PIL import Image

from tagkin import Annotator
from tagkin.collection import read_tags
from tagkin.errors import ClusterLost
from tagkin.features import FeatureCache

pytest.importorskip("dask.array", reason="Dask is not installed")

from tagkin.distributed import connect, extract


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Twelve discs in two colours, and a broken file."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:64, 0:64] - 32
    rows = []
    for i in range(12):
        pixels = rng.integers(180, 256, (64, 64, 3)).astype(np.uint8)
        pixels[x**2 + y**2 < (12 + i) ** 2] = [(200, 30, 30), (30, 30, 200)][i % 2]
        Image.fromarray(pixels).save(folder / f"{i}.png")
        rows.append({"file_name": f"{i}.png", "tags": [["red"], ["blue"]][i % 2]})
    (folder / "broken.png").write_bytes(b"\x89PNG not much")
    rows.append({"file_name": "broken.png", "tags": ["red"]})
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def fitted(photos, cache, **options):
    """An annotator of the photographs; `options` go to `read_features`."""
    table = read_tags(photos / "metadata.jsonl")
    files = [str(photos / name) for name in table.file_names]
    annotator = Annotator(cache=FeatureCache(cache))
    seen = annotator.read_features(files, **options)
    tags_of = dict(zip(map(os.path.abspath, files), table.tags, strict=True))
    return annotator.fit(seen, [tags_of[os.path.abspath(file)] for file in seen.files]), seen


def test_a_model_from_a_cluster_is_that_of_one_machine(client, photos, tmp_path):
    here, _ = fitted(photos, tmp_path / "here")
    with connect(client.scheduler.address) as cluster:
        there, seen = fitted(photos, tmp_path / "there", extract=partial(extract, client=cluster))
    assert len(there.files_) == 12
    assert [os.path.basename(failure.file) for failure in seen.failures] == ["broken.png"]
    assert list(there.files_) == list(here.files_)
    new = sorted(photos.glob("*.png"))[:4]
    tags = [[[s.tag for s in p.suggestions] for p in a.suggest(new, n=1)] for a in (here, there)]
    assert tags[0] == tags[1]


def test_no_scheduler_there_is_a_clear_error():
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(ClusterLost, match="No Dask scheduler answers"),
    ):
        connect("tcp://127.0.0.1:1")
