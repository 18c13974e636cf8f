"""Text encoders beside image encoders, with two small networks that share a space."""

import json

import numpy as np
import pytest

from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tagkin.features import get_backbone
from tagkin.tag_meanings import NamePrior, common_tags
from tests.features.joint import EXPORTS, SIZE, WORDS, write_joint_encoder

pytest.importorskip("tokenizers")


def plain(color):
    """A photograph of one colour, as the encoder takes it."""
    return np.broadcast_to(np.array(color, np.uint8), (SIZE, SIZE, 3))[None].copy()


@pytest.fixture
def folder(tmp_path):
    return write_joint_encoder(tmp_path)


def embedding(*sentences):
    """What the synthetic text encoder makes of sentences: the mean of their unit embeddings."""
    rows = [np.sum([WORDS[word] for word in sentence.split()], axis=0) for sentence in sentences]
    mean = np.mean([row / np.linalg.norm(row) for row in rows], axis=0)
    return mean / np.linalg.norm(mean)


def test_names_are_put_into_a_sentence_and_embedded(folder):
    encoder = get_backbone(str(folder / "image.onnx")).text_encoder
    expected = [embedding("photo of red"), embedding("photo of green")]
    np.testing.assert_allclose(encoder(["red", "green"]), expected, atol=1e-6)
    assert len(encoder([])) == 0


def test_several_prompts_are_averaged(tmp_path):
    folder = write_joint_encoder(tmp_path, prompts=["photo of {}", "{}"])
    encoder = get_backbone(str(folder / "image.onnx")).text_encoder
    np.testing.assert_allclose(encoder(["red"])[0], embedding("photo of red", "red"), atol=1e-6)


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("export", EXPORTS)
def test_exports_that_people_use_work_with_few_settings(tmp_path, export, external):
    """Either type of tokens, a batch of one or any, half precision, several outputs, weights in
    another file."""
    folder = write_joint_encoder(tmp_path, export, external=external, lower_case=True)
    backbone = get_backbone(str(folder / "image.onnx"))
    X = np.concatenate([backbone(plain(c)) for c in [(250, 10, 10), (10, 250, 10)]])
    both = backbone(np.concatenate([plain((250, 10, 10)), plain((10, 250, 10))]))
    assert both.dtype == np.float32
    np.testing.assert_allclose(both, X, rtol=1e-6)
    np.testing.assert_allclose(X, np.array([(250, 10, 10), (10, 250, 10)]) / 255, rtol=1e-2)
    rows = backbone.text_encoder(["RED", "green"])
    expected = [embedding("photo of red"), embedding("photo of green")]
    np.testing.assert_allclose(rows, expected, atol=2e-3)
    assert (X @ rows.T).argmax(axis=1).tolist() == [0, 1]


def test_case_is_kept_unless_the_encoder_wants_lower_case(folder):
    encoder = get_backbone(str(folder / "image.onnx")).text_encoder
    # RED is not in the vocabulary of the tokenizer
    np.testing.assert_allclose(encoder(["RED"])[0], embedding("photo of"), atol=1e-6)


def test_texts_are_padded_to_a_length_and_cut_to_it(tmp_path):
    folder = write_joint_encoder(tmp_path, length=4)
    encoder = get_backbone(str(folder / "image.onnx")).text_encoder
    np.testing.assert_allclose(encoder(["red"])[0], embedding("photo of red"), atol=1e-6)
    # the last token stays
    cut = encoder(["green green green blue"])[0]
    np.testing.assert_allclose(cut, embedding("photo of green blue"), atol=1e-6)


def test_padding_is_told_to_encoders_without_a_mask(tmp_path):
    """The row of the token to pad with counts."""
    folder = write_joint_encoder(tmp_path, "siglip", length=5, pad=1)
    encoder = get_backbone(str(folder / "image.onnx")).text_encoder
    expected = embedding("photo of red photo photo")
    np.testing.assert_allclose(encoder(["red"])[0], expected, atol=1e-6)


def test_a_length_that_the_graph_does_not_take_is_told(tmp_path):
    folder = write_joint_encoder(tmp_path, "openclip", length=64)
    with pytest.raises(InvalidInput, match=r"of shape \[1, 77\].*length in text is 64"):
        get_backbone(str(folder / "image.onnx")).text_encoder  # noqa: B018


def colors(backbone):
    return np.concatenate(
        [backbone(plain(color)) for color in [(250, 10, 10), (10, 250, 10), (10, 10, 250)]]
    )


def test_photographs_are_scored_by_the_cosine_with_names(folder):
    backbone = get_backbone(str(folder / "image.onnx"))
    prior = NamePrior(backbone.text_encoder)
    table = prior.meanings(["red", "green", "things|blue"]).table()
    X = colors(backbone)
    scores = prior.scores(X, table.rows)
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]
    rows = np.stack([embedding(f"photo of {c}") for c in ("red", "green", "blue")])
    expected = 10 * (X / np.linalg.norm(X, axis=1, keepdims=True)) @ rows.T
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


@pytest.mark.parametrize("text", [{"scale": 1000.0}, {"scale": 30.0, "bias": -20.0}])
def test_names_alone_are_modest(tmp_path, text):
    """The right name is likelier than others, and no name is nearly certain."""
    folder = write_joint_encoder(tmp_path, **text)
    backbone = get_backbone(str(folder / "image.onnx"))
    prior = NamePrior(backbone.text_encoder)
    odds = prior.log_odds(colors(backbone), prior.meanings(["red", "green", "blue"]).table())
    assert odds.argmax(axis=1).tolist() == [0, 1, 2]
    assert odds.max() < np.log(0.95 / 0.05)


def test_without_a_bias_a_name_competes_with_common_tags(folder):
    """It has the odds of its share among them; none of them is a word of the synthetic encoder."""
    backbone = get_backbone(str(folder / "image.onnx"))
    prior = NamePrior(backbone.text_encoder)
    X, table = colors(backbone), prior.meanings(["red"]).table()
    others = [embedding("photo of") for tag in common_tags() if tag not in WORDS]
    assert len(others) == len(common_tags())
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    against = np.log(np.exp(10 * unit @ np.array(others).T).sum(axis=1))
    logits = 10 * unit @ embedding("photo of red") - against
    odds = prior.log_odds(X, table)[:, 0]
    np.testing.assert_allclose(odds, -0.06 + 0.53 * logits, rtol=1e-3, atol=1e-3)
    # a common tag does not compete with itself
    twice = prior.log_odds(X, prior.meanings([common_tags()[0]]).table())
    assert np.isfinite(twice).all()


def test_a_bias_makes_odds_of_cosines(tmp_path):
    backbone = get_backbone(str(write_joint_encoder(tmp_path, bias=-9.0) / "image.onnx"))
    prior = NamePrior(backbone.text_encoder)
    table, X = prior.meanings(["red"]).table(), backbone(plain((250, 10, 10)))
    np.testing.assert_allclose(prior.log_odds(X, table), prior.scores(X, table.rows) - 9.0)


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
        ({"modle": "text.onnx"}, "text: unknown modle; known are model, tokenizer"),
        ({"prompts": ["a photo"]}, "text: each prompt must have {} once"),
        ({"prompts": 3}, "text: settings.prompts is 3, not a list of texts"),
        ({"lower_case": 1}, "settings.lower_case is 1, neither true nor false"),
        ({"scale": True}, "settings.scale is True, not a number"),
        ({"scale": "100"}, "settings.scale is '100', not a number"),
        ({"length": 7.5}, "settings.length is 7.5, not a whole number"),
        ({"pad": "0"}, "settings.pad is '0', not a whole number"),
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
    with pytest.raises(InvalidInput, match=r"text\.onnx is not an ONNX model"):
        get_backbone(str(folder / "image.onnx")).text_encoder  # noqa: B018
