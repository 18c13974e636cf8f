"""tagkin cache: what it tells, and what it removes."""

import json
from pathlib import Path

import pytest

from tagkin.features import FeatureCache
from tests.features.cache_samples import cached, fill

from .conftest import call


def test_info_tells_what_training_has_kept(world):
    cache = world.cache.with_name("cache-of-training")  # nobody else uses it
    result = call(cache, "cache")
    assert result.exit_code == 0
    assert str(cache) in result.stdout
    assert "of at most 10 GB" in result.stdout
    assert "efficientnet-lite0" in result.stdout
    answer = json.loads(call(cache, "cache", "--json").stdout)
    uses = {use["name"]: use for use in answer["backbones"]}
    assert answer["n_entries"] == sum(use["n_entries"] for use in uses.values())
    use = uses["efficientnet-lite0-whole"]
    assert use["dimension"] == 1280
    assert use["n_entries"] >= len(world.tags_of)
    assert use["n_bytes"] == 4 * 1280 * use["n_entries"] < answer["n_bytes"]


def test_training_keeps_vectors_of_tag_names(world):
    cache = world.cache.with_name("cache-of-training")
    assert "sentence-encoder" in call(cache, "cache").stdout


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


@pytest.mark.parametrize(("max_size", "n"), [("0.1 KB", 300), ("0", 300), ("1GB", 0)])
def test_the_cache_removes_what_it_says(run, tmp_path, max_size, n):
    fill(tmp_path / "cache", range(300))
    command = ("cache", "--max-size", max_size)
    result = run(*command, "--dry-run")
    assert f"{n} entries would be removed from cache: " in result.stderr
    assert cached(tmp_path / "cache", range(300)) == set(range(300))
    would = json.loads(run(*command, "--dry-run", "--json").stdout)
    assert (would["folder"], would["dry_run"], would["n_entries"]) == ("cache", True, n)
    done = json.loads(run(*command, "--json").stdout)
    assert (done["dry_run"], done["n_entries"]) == (False, n)
    assert len(cached(tmp_path / "cache", range(300))) == 300 - n
    result = run(*command)
    assert result.exit_code == 0
    assert "0 entries were removed from cache: " in result.stderr


@pytest.mark.parametrize("text", ["much", "-1MB", "5K", "1e3", ""])
def test_a_size_that_is_none(run, text):
    result = run("cache", "--max-size", text)
    assert result.exit_code == 2
    assert "write it like 500MB or 2GB" in result.stderr


def test_a_damaged_cache_is_told_and_can_be_cleared(run, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "features.sqlite").write_bytes(b"no database" * 1000)
    result = run("cache")
    assert result.exit_code == 1
    assert "file is not a database" in result.stderr
    assert "tagkin cache --max-size 0" in result.stderr
    assert run("cache", "--max-size", 0).exit_code == 0
    assert FeatureCache(tmp_path / "cache").info().n_entries == 0
    assert run("cache").exit_code == 0
