"""Text encoders beside image encoders, with two small networks that share a space."""

import json

import numpy as np
import pytest

from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tagkin.features import get_backbone
from tagkin.tag_meanings import TextPrior
from tests.features.joint import SIZE, WORDS, write_joint_encoder

pytest.importorskip("tokenizers")


def plain(color):
    """A photograph of one colour, as the encoder takes it."""
    return np.broadcast_to(np.array(color, np.uint8), (SIZE, SIZE, 3))[None].copy()


@pytest.fixture
def folder(tmp_path):
    return write_joint_encoder(tmp_path)


def embedding(sentence):
    """What the synthetic text encoder makes of a sentence: the mean of its words' rows."""
    rows = [WORDS[word] for word in sentence.split()]
    return np.mean(rows, axis=0)


def test_names_are_put_into_a_sentence_and_embedded(folder):
    encoder = get_backbone(str(folder / "image.onnx")).text_encoder
    found = encoder(["red", "green", ""])
    expected = [embedding("photo of red"), embedding("photo of green"), embedding("photo")]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    many = encoder(["red"] * 70 + ["green"])
    np.testing.assert_allclose(many[-1], found[1], atol=1e-6)


def test_texts_are_padded_to_a_length_and_cut_to_it(tmp_path):
    folder = write_joint_encoder(tmp_path, length=4)
    encoder = get_backbone(str(folder / "image.onnx")).text_encoder
    np.testing.assert_allclose(encoder(["red"])[0], embedding("photo of red"), atol=1e-6)
    # the last token stays
    found = encoder(["green green green blue"])[0]
    np.testing.assert_allclose(found, embedding("photo of green blue"), atol=1e-6)


def test_photographs_are_scored_by_the_cosine_with_names(folder):
    backbone = get_backbone(str(folder / "image.onnx"))
    prior = TextPrior(backbone.text_encoder)
    table = prior.meanings(["red", "green", "things|blue"]).table()
    X = np.concatenate([backbone(plain(c)) for c in [(250, 10, 10), (10, 250, 10), (10, 10, 250)]])
    scores = prior.scores(X, table.rows)
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]
    rows = np.stack([embedding(f"photo of {c}") for c in ("red", "green", "blue")])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected = 10 * (X / np.linalg.norm(X, axis=1, keepdims=True)) @ unit.T
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    # without a bias, odds are those against a sentence without a name
    neutral = embedding("photo") / np.linalg.norm(embedding("photo"))
    against = 10 * (X / np.linalg.norm(X, axis=1, keepdims=True)) @ neutral
    odds = prior.log_odds(X, table)
    np.testing.assert_allclose(odds, expected - against[:, None] - np.log(10), rtol=1e-4)


def test_a_bias_makes_odds_of_cosines(tmp_path):
    backbone = get_backbone(str(write_joint_encoder(tmp_path, bias=-4.0) / "image.onnx"))
    prior = TextPrior(backbone.text_encoder)
    table, X = prior.meanings(["red"]).table(), backbone(plain((250, 10, 10)))
    np.testing.assert_allclose(prior.log_odds(X, table), prior.scores(X, table.rows) - 4.0)


def test_the_text_encoder_is_no_part_of_the_fingerprint(folder):
    path = folder / "image.json"
    with_text = get_backbone(str(folder / "image.onnx"))
    settings = json.loads(path.read_text())
    del settings["text"]
    path.write_text(json.dumps(settings))
    without = get_backbone(str(folder / "image.onnx"))
    assert with_text.fingerprint == without.fingerprint
    assert without.text_encoder is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modle": "text.onnx"}, "unknown modle in text; known are model, tokenizer"),
        ({"prompt": "a photo"}, "prompt in text has {} once"),
        ({"prompt": 3}, "prompt in text is a text; found 3"),
        ({"scale": "100"}, "scale in text is a number; found '100'"),
        ({"length": 7.5}, "length in text is a number or null; found 7.5"),
        ({"pad": "0"}, "pad in text is a number; found '0'"),
    ],
)
def test_wrong_settings_are_told(folder, change, message):
    path = folder / "image.json"
    settings = json.loads(path.read_text())
    settings["text"] |= change
    path.write_text(json.dumps(settings))
    with pytest.raises(InvalidInput, match=message):
        get_backbone(str(folder / "image.onnx"))


def test_what_is_missing_is_told(folder, monkeypatch):
    backbone = get_backbone(str(folder / "image.onnx"))
    (folder / "tokenizer.json").rename(folder / "elsewhere.json")
    with pytest.raises(StorageError, match=r"tokenizer\.json is missing"):
        backbone.text_encoder  # noqa: B018
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(InvalidInput, match=r"tokenizer\.json is not a tokenizer"):
        backbone.text_encoder  # noqa: B018
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(MissingExtra, match="pip install tokenizers"):
        backbone.text_encoder  # noqa: B018


def test_a_file_that_is_no_network_is_told(folder):
    (folder / "text.onnx").write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match=r"text\.onnx cannot be opened"):
        get_backbone(str(folder / "image.onnx")).text_encoder  # noqa: B018
