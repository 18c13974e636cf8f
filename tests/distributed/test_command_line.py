"""``tagkin model train --scheduler``: the photographs are looked at on a cluster."""

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import tagkin
from tagkin.cli import app

pytest.importorskip("dask.array", reason="Dask is not installed")


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


def trained(photos, model, *options):
    """A model by ``tagkin model train``, and what the command said."""
    train = ["model", "train", str(photos), str(model), "--json", *options]
    said = CliRunner().invoke(app, train, env={"TAGKIN_CACHE": str(model.parent / "cache")})
    assert said.exit_code == 0, said.output
    return tagkin.load(model), json.loads(said.stdout)


@pytest.fixture(scope="module")
def here(photos, tmp_path_factory):
    """The model of one machine."""
    return trained(photos, tmp_path_factory.mktemp("here") / "model")[0]


def test_a_model_from_a_cluster_is_that_of_one_machine(client, photos, here, tmp_path):
    address = client.scheduler.address
    there, summary = trained(photos, tmp_path / "there", "--scheduler", address)
    assert summary["photographs"]["used"] == 12
    assert len(summary["photographs"]["unreadable"]) == 1
    models = [there, here]
    assert list(models[0].files_) == list(models[1].files_)
    found = [model.suggest(sorted(photos.glob("*.png"))[:4], n=1) for model in models]
    for one, other in zip(*found, strict=True):
        assert [s.tag for s in one.suggestions] == [s.tag for s in other.suggestions]


def test_no_scheduler_there_is_a_clear_error(photos, tmp_path):
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        said = CliRunner().invoke(
            app,
            [
                "model",
                "train",
                str(photos),
                str(tmp_path / "m"),
                "--scheduler",
                "tcp://127.0.0.1:1",
            ],
        )
    assert said.exit_code == 1
    assert "No Dask scheduler answers" in f"{said.output}{said.exception}"
    assert not (tmp_path / "m").exists()
