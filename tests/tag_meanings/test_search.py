"""Photographs by words: what fits best comes first, and falls off visibly."""

import numpy as np
import pytest

from tagkin.errors import InvalidInput
from tagkin.features import get_backbone
from tagkin.tag_meanings import NamePrior, measure_fit, score_words
from tests.features.joint import SIZE, write_joint_encoder


def test_a_joint_encoder_takes_the_words_as_they_are(tmp_path):
    pytest.importorskip("tokenizers")
    folder = write_joint_encoder(tmp_path, prompts=["{}"])
    backbone = get_backbone(str(folder / "image.onnx"))
    colors = [(250, 10, 10), (10, 250, 10), (250, 250, 10)]
    squares = np.array([np.full((SIZE, SIZE, 3), color, np.uint8) for color in colors])
    prior = NamePrior(backbone.text_encoder)
    E = prior.encoder.embed_images(backbone(squares))
    assert [score_words(prior, E, words).argmax() for words in ("red", " red  green ")] == [0, 2]
    with pytest.raises(InvalidInput, match="at least one word"):
        score_words(prior, E, "  ")


def test_fit_falls_from_the_best_to_the_background():
    rng = np.random.default_rng(0)
    scores = np.append(rng.normal(size=1000), [6.0, 9.0, 12.0])
    fit, stands_out = measure_fit(scores)
    assert stands_out
    np.testing.assert_allclose(fit[-3:], [0.4, 0.7, 1.0], atol=0.03)
    assert (fit[:1000] > 0).mean() < 0.05
    assert np.isclose(fit.max(), 1)


def test_nothing_stands_out_of_noise():
    assert not measure_fit(np.random.default_rng(0).normal(size=300))[1]
    fit, stands_out = measure_fit(np.zeros(5))
    assert not stands_out
    assert np.isfinite(fit).all()
    assert measure_fit(np.zeros(0))[0].shape == (0,)


def test_a_third_of_the_photographs_may_fit():
    fit, stands_out = measure_fit(np.repeat([1.0, 0.0], [8, 16]))
    assert stands_out
    np.testing.assert_allclose(fit, np.repeat([1.0, 0.0], [8, 16]))
