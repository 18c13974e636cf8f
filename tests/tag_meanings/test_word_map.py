"""The map that comes with tagkin, and records that are not one."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import tagkin.tag_meanings
from tagkin.errors import StorageError
from tagkin.features import get_backbone
from tagkin.tag_meanings import CaptionEncoder, NamePrior
from tagkin.tag_meanings.word_map import WordMap, read_word_map

FOLDER = Path(tagkin.tag_meanings.__file__).parent


def small(rng, d=5, v=4, m=3):
    shapes = (d,), (d, m), (v,), (v, m)
    return WordMap(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))


def test_both_sides_meet_in_one_space():
    """Against the equations, image by image."""
    rng = np.random.default_rng(0)
    learned = small(rng)
    X, S = rng.random((6, 5)), rng.normal(size=(2, 4))
    for x, got in zip(X, learned.embed_images(X), strict=True):
        root = np.sqrt(x) / np.sqrt(x.sum())
        e = learned.image_map.T @ (root - learned.image_mean)
        np.testing.assert_allclose(got, e / np.linalg.norm(e), rtol=1e-5, atol=1e-6)
    for s, got in zip(S, learned.embed_words(S), strict=True):
        g = learned.word_map.T @ (s - learned.word_mean)
        np.testing.assert_allclose(got, g / np.linalg.norm(g), rtol=1e-5, atol=1e-6)


def test_a_record_is_written_in_half_precision_and_read_again():
    learned = small(np.random.default_rng(0))
    again = WordMap.read(learned.write())
    np.testing.assert_allclose(again.image_map, learned.image_map, rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"word_map": np.ones((4, 2), np.float16)},
            "word_map has 2 entries where .*_map has 3",
        ),
        ({"image_mean": np.full(5, np.nan, np.float16)}, "NaN"),
        ({"image_mean": np.zeros((5, 1), np.float16)}, "image_mean"),
        ({"word_mean": None}, "word_mean"),
    ],
)
def test_a_damaged_record_is_refused(change, message):
    learned = small(np.random.default_rng(0))
    arrays = {name: array for name, array in (vars(learned) | change).items() if array is not None}
    with pytest.raises(StorageError, match=message):
        WordMap.read(save(arrays))
    with pytest.raises(StorageError, match="Install tagkin again"):
        WordMap.read(b"nothing")


def test_the_map_of_tagkin_is_small_and_says_what_it_was_learned_from():
    assert (FOLDER / "word_map.safetensors").stat().st_size < 2_000_000
    text = (FOLDER / "word_map.txt").read_text("utf-8")
    assert "COCO" in text
    assert "CC BY 4.0" in text
    assert read_word_map().image_map.shape == (get_backbone().dimension, 256)


@pytest.mark.parametrize("language", [("cat", "coffee"), ("Katze", "Kaffee"), ("chat", "café")])
def test_words_fit_public_pictures(language, chelsea_and_coffee):
    """A picture of a cat and one of a cup of coffee, in three languages."""
    prior = NamePrior(CaptionEncoder())
    scores = prior.scores(chelsea_and_coffee, prior.meanings(language).table().rows)
    assert scores.argmax(axis=1).tolist() == [0, 1]
    odds = prior.log_odds(chelsea_and_coffee, prior.meanings([*language, "2019"]).table())
    assert odds[:, :2].argmax(axis=1).tolist() == [0, 1]
    assert (odds[:, 2] == -np.inf).all()
    assert odds[:, :2].max() < np.log(0.95 / 0.05)


@pytest.fixture(scope="module")
def chelsea_and_coffee():
    data = pytest.importorskip("skimage.data")
    backbone = get_backbone()
    pixels = [backbone.prepare(picture) for picture in (data.chelsea(), data.coffee())]
    return backbone(np.stack(pixels))
