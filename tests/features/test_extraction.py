"""Runs over files: every photograph once, nothing lost, whatever is among them."""

import contextlib
import os
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin.errors import InvalidInput
from tagkin.features import Backbone, FeatureCache, Preprocessing, extract, get_backbone
from tagkin.features import extraction as extraction_module
from tagkin.features.backbone import fingerprint_of
from tagkin.images import content_digest, decode
from tests.forking import in_child, needs_fork

ROOT = Path(__file__).parents[2]


class Corners(Backbone):
    """A backbone whose features are plain to see: the corner pixels. Counts what it sees."""

    name = "corners"
    dimension = 12
    preprocessing = Preprocessing(8, "warp", resample="bilinear")
    fingerprint = fingerprint_of("corners", preprocessing)

    def __init__(self):
        self.n_seen = 0
        self._lock = threading.Lock()

    def __call__(self, batch):
        with self._lock:
            self.n_seen += len(batch)
        return batch[:, ::7, ::7].reshape(len(batch), 12).astype(np.float32)


class Failing(Corners):
    """Gives NaN for a black photograph."""

    def __call__(self, batch):
        features = super().__call__(batch)
        features[~features.any(axis=1), 3] = np.nan
        return features


def save(path, seed, size=(40, 30)):
    rng = np.random.default_rng(seed)
    Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8)).save(path, quality=90)
    os.utime(path, ns=(10**18, 10**18 + seed))  # not a moment ago
    return str(path)


@pytest.fixture
def photographs(tmp_path):
    (tmp_path / "photos").mkdir()
    return [save(tmp_path / "photos" / f"{i:03}.jpg", i) for i in range(23)]


def prepared(file, backbone):
    return backbone.prepare(decode(Path(file).read_bytes(), min_side=backbone.min_side))


def expected(files):
    backbone = Corners()
    return backbone(np.stack([prepared(file, backbone) for file in files]))


@pytest.mark.parametrize("cores", [1, 5])
def test_rows_are_in_the_order_given(photographs, monkeypatch, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    files = photographs[::-1]
    calls = []
    extraction = extract(
        files, Corners(), progress=lambda what, done, total: calls.append((done, total))
    )
    assert extraction.files == files
    np.testing.assert_array_equal(extraction.features, expected(files))
    assert extraction.features.dtype == np.float32
    assert extraction.digests == [content_digest(Path(f).read_bytes()) for f in files]
    assert (extraction.failures, extraction.n_cached, extraction.n_computed) == ([], 0, 23)
    assert calls[-1] == (23, 23)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_real_features_are_the_backbones_own(photographs):
    backbone = get_backbone()
    extraction = extract(photographs[:3], backbone)
    squares = [prepared(f, backbone) for f in photographs[:3]]
    np.testing.assert_allclose(
        extraction.features, backbone(np.stack(squares)), rtol=1e-5, atol=1e-6
    )


def test_a_large_photograph_has_the_features_of_the_small_one(tmp_path):
    """Cosine above 0.99, though the large one is decoded at a fraction of its size."""
    large, small = tmp_path / "large.jpg", tmp_path / "small.png"
    y, x = np.mgrid[:1200, :1600] / 400
    pixels = np.stack([np.sin(5 * x) + np.sin(y * y), np.sin(3 * x * y), np.cos(4 * y)], axis=2)
    image = Image.fromarray(np.round(63 * pixels + 127).clip(0, 255).astype(np.uint8))
    image.save(large, quality=95)
    image.resize((400, 300), Image.Resampling.BICUBIC).save(small)
    first, two = extract([large, small], get_backbone()).features
    assert first @ two > 0.99 * np.linalg.norm(first) * np.linalg.norm(two)


def test_bad_files_are_failures_and_the_run_goes_on(photographs, tmp_path):
    text, torn, folder = tmp_path / "t.jpg", tmp_path / "c.jpg", tmp_path / "photos"
    text.write_text("not a photograph")
    torn.write_bytes(Path(photographs[0]).read_bytes()[:300])
    bad = [str(text), str(torn), str(folder), str(tmp_path / "none.jpg"), "nul\0.jpg"]
    files = [f for pair in zip(bad, photographs, strict=False) for f in pair]
    with FeatureCache(tmp_path / "cache") as cache:
        for n_cached in (0, 5):
            extraction = extract(files, Corners(), cache=cache)
            assert [failure.file for failure in extraction.failures] == bad
            assert all(failure.reason for failure in extraction.failures)
            assert extraction.failures[3].reason == "there is no such file"
            assert extraction.files == photographs[:5]
            np.testing.assert_array_equal(extraction.features, expected(photographs[:5]))
            assert extraction.n_cached == n_cached


def test_nothing_to_do_and_nothing_readable(tmp_path):
    assert extract([], Corners()).features.shape == (0, 12)
    extraction = extract([tmp_path / "none.jpg"], Corners())
    assert extraction.features.shape == (0, 12)
    assert len(extraction.failures) == 1
    with pytest.raises(InvalidInput, match="a list of paths; found one path"):
        extract(str(tmp_path), Corners())


def test_features_that_are_not_finite_are_failures(tmp_path, photographs):
    black = tmp_path / "black.png"
    Image.new("RGB", (20, 20)).save(black)
    with FeatureCache(tmp_path / "cache") as cache:
        for _ in range(2):  # and are not kept
            extraction = extract([photographs[0], str(black)], Failing(), cache=cache)
            assert [f.file for f in extraction.failures] == [str(black)]
            assert "not finite" in extraction.failures[0].reason
            assert extraction.files == photographs[:1]


def test_copies_are_seen_once(photographs, tmp_path):
    copies = [str(tmp_path / f"copy{i}.jpg") for i in range(30)]
    for i, copy in enumerate(copies):
        shutil.copy(photographs[i % 2], copy)
    torn = [str(tmp_path / f"torn{i}.jpg") for i in range(2)]
    for file in torn:
        Path(file).write_bytes(Path(photographs[0]).read_bytes()[:300])
    backbone = Corners()
    extraction = extract(torn + copies + photographs[:2], backbone)
    assert backbone.n_seen == extraction.n_computed == 2
    np.testing.assert_array_equal(extraction.features, expected(copies + photographs[:2]))
    assert [failure.file for failure in extraction.failures] == torn
    assert len({failure.reason for failure in extraction.failures}) == 1


# --- with a cache ---


def test_a_second_run_reads_no_file(photographs, tmp_path, monkeypatch):
    with FeatureCache(tmp_path / "cache") as cache:
        first = extract(photographs, Corners(), cache=cache)
    monkeypatch.setattr(extraction_module, "read_bytes", None)
    with FeatureCache(tmp_path / "cache") as cache:
        backbone = Corners()
        second = extract(photographs, backbone, cache=cache)
    assert (second.n_cached, second.n_computed, backbone.n_seen) == (23, 0, 0)
    np.testing.assert_array_equal(second.features, first.features)
    assert second.digests == first.digests


def test_a_moved_file_costs_no_inference_and_a_changed_one_does(photographs, tmp_path):
    cache = FeatureCache(tmp_path / "cache")
    extract(photographs, Corners(), cache=cache)
    moved = shutil.move(photographs[4], tmp_path / "elsewhere.jpg")
    status = os.stat(photographs[5])
    changed = save(photographs[5], 99)
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    files = [str(moved), changed, photographs[6]]
    backbone = Corners()
    extraction = extract(files, backbone, cache=cache)
    assert (extraction.n_cached, extraction.n_computed, backbone.n_seen) == (2, 1, 1)
    np.testing.assert_array_equal(extraction.features, expected(files))
    cache.close()


def test_a_damaged_cache_is_computed_again(photographs, tmp_path):
    with FeatureCache(tmp_path / "cache") as cache:
        extract(photographs, Corners(), cache=cache)
    database = tmp_path / "cache" / "features.sqlite"
    data = bytearray(database.read_bytes())
    for row in expected(photographs)[[3, 8, 11, 19]]:
        data[data.index(row.tobytes()) + 9] ^= 1
    database.write_bytes(data)
    with FeatureCache(tmp_path / "cache") as cache:
        extraction = extract(photographs, Corners(), cache=cache)
        assert (extraction.n_cached, extraction.n_computed) == (19, 4)
        np.testing.assert_array_equal(extraction.features, expected(photographs))
        assert extract(photographs, Corners(), cache=cache).n_cached == 23


def test_a_cache_that_cannot_be_written(photographs, tmp_path):
    (tmp_path / "file").write_text("")
    cache = FeatureCache(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="continues without"):
        extraction = extract(photographs, Corners(), cache=cache)
    np.testing.assert_array_equal(extraction.features, expected(photographs))


def test_a_file_that_changes_while_it_is_read(photographs, monkeypatch):
    read = extraction_module.read_bytes

    def disturbed(path):
        data = read(path)
        if path == photographs[2]:
            Path(path).write_bytes(data + b"more")
        elif path == photographs[3]:
            Path(path).unlink()
        return data

    monkeypatch.setattr(extraction_module, "read_bytes", disturbed)
    result = extract(photographs, Corners())
    assert [f.file for f in result.failures] == photographs[2:4]
    assert {f.reason for f in result.failures} == {"it changed while it was read"}
    assert len(result.files) == 21


# --- interrupted ---


def test_an_error_of_the_backbone_ends_the_run_and_keeps_what_was_computed(photographs, tmp_path):
    class Broken(Corners):
        def __call__(self, batch):
            if self.n_seen > 10:
                raise RuntimeError("broken")
            return super().__call__(batch)

    with FeatureCache(tmp_path / "cache") as cache:
        with pytest.raises(RuntimeError, match="broken"):
            extract(photographs, Broken(), cache=cache)
        assert cache.info().n_entries >= 11
        assert extract(photographs, Corners(), cache=cache).n_computed <= 12


def test_an_error_of_the_progress_ends_the_run_at_once(photographs):
    def fail(what, done, total):
        raise KeyboardInterrupt

    backbone = Corners()
    backbone.batch_size = 1
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        extract(photographs, backbone, progress=fail)
    assert set(threading.enumerate()) <= before


def extract_until(files, cache, n, signum):
    """A run that gets a signal when it tells that n files are done."""

    def progress(what, done, total):
        if done >= n:
            os.kill(os.getpid(), signum)

    with FeatureCache(cache) as opened, contextlib.suppress(KeyboardInterrupt):
        extract(files, Corners(), cache=opened, progress=progress)


@needs_fork
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT], ids=["kill", "interrupt"])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path, signum):
    photos = tmp_path / "photos"
    photos.mkdir()
    files = [save(photos / f"{i:03}.jpg", i, (8, 8)) for i in range(200)]
    digests, before = [content_digest(Path(f).read_bytes()) for f in files], 0
    for n in (3, 20, 31, 9):
        n_done = min(before + n, 199)
        child = in_child(lambda n=n_done: extract_until(files, tmp_path / "cache", n, signum))
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended == (-signum if signum == signal.SIGKILL else 0)
        with FeatureCache(tmp_path / "cache") as cache:
            out = np.empty((200, 12), dtype=np.float32)
            there = cache.load(Corners(), digests, out)
        np.testing.assert_array_equal(out[there], expected(files)[there])
        assert there.sum() >= n_done  # what was told to be done is kept
        before = int(there.sum())
    with FeatureCache(tmp_path / "cache") as cache:
        extraction = extract(files, Corners(), cache=cache)
    assert (len(extraction.files), extraction.n_computed) == (200, 200 - before)
