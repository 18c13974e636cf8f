"""tagkin cache: what it tells, and what it removes."""

import json
from pathlib import Path

import pytest

from tagkin.features import FeatureCache
from tests.features.cache_samples import cached, fill

from .conftest import call


def test_it_tells_what_training_has_kept(world):
    cache = world.cache.with_name("cache-of-training")  # nobody else uses it
    result = call(cache, "cache")
    assert result.exit_code == 0
    assert str(cache) in result.stdout
    answer = json.loads(call(cache, "cache", "--json").stdout)
    # also vectors of tag names
    assert answer["n_entries"] > len(world.tags_of)
    assert answer["n_bytes"] > 4 * 1280 * len(world.tags_of)


def test_info_of_no_cache_makes_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = json.loads(call(Path("none"), "cache", "--json").stdout)
    assert (answer["folder"], answer["n_entries"], answer["n_bytes"]) == ("none", 0, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command with a cache in the current folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: call(Path("cache"), *args)


def test_clearing_removes_everything(run, tmp_path):
    fill(tmp_path / "cache", range(300))
    result = run("cache", "--clear")
    assert result.exit_code == 0
    assert "The cache in cache is empty." in result.stderr
    assert cached(tmp_path / "cache", range(300)) == set()
    assert json.loads(run("cache", "--clear", "--json").stdout)["n_entries"] == 0


def test_a_damaged_cache_is_told_and_can_be_cleared(run, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "features.sqlite").write_bytes(b"no database" * 1000)
    result = run("cache")
    assert result.exit_code == 1
    assert "file is not a database" in result.stderr
    assert "tagkin cache --clear" in result.stderr
    assert run("cache", "--clear").exit_code == 0
    assert FeatureCache(tmp_path / "cache").info().n_entries == 0
    assert run("cache").exit_code == 0
