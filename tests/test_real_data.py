"""On real photographs' features and labels, where they are at hand."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from tagkin import FeatureAnnotator, SemanticSpace

FOLDER = Path(
    os.environ.get("TAGKIN_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
)


def archive(name):
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data; set TAGKIN_DATA to the folder that has it")
    return np.load(path)


def neighbor_voting_map(known, new, labels, truth, n_neighbors=100):
    """Mean average precision, in percent, of the share of nearest neighbours with each label."""
    known, new = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (known, new))
    kin = np.argpartition(-(new @ known.T), n_neighbors, axis=1)[:, :n_neighbors]
    votes = labels[kin].mean(axis=1)
    # votes tie heavily: break ties at random, not in favour of either space
    votes += 1e-6 * np.random.default_rng(0).random(votes.shape)
    return 100 * average_precision_score(truth, votes, average="macro")


def test_the_space_gains_on_flickr8k():
    """By 2.6 to 4 points of MAP, depending on the landmarks drawn; exact: 30.4."""
    data = archive("flickr8k.npz")
    X = data["features"].astype(np.float32) * data["scale"]
    test = data["split"] == "test"
    labels = data["votes"] >= 2
    frequent = (labels[~test].sum(axis=0) >= 10) & (labels[test].sum(axis=0) >= 1)
    labels = labels[:, frequent].astype(np.float32)
    assert labels.shape[1] == 179
    space = SemanticSpace(n_landmarks=1500, random_state=0).fit(X[~test], labels[~test])
    visual, semantic = (
        neighbor_voting_map(Z[~test], Z[test], labels[~test], labels[test])
        for Z in (X, space.transform(X))
    )
    assert visual == pytest.approx(27.2, abs=0.5)
    assert semantic > 29.5


def test_few_photographs_do_not_show_which_tags_are_wrong():
    """Of 400, most of whose tags are on a dozen, and nearly none is wrong."""
    data = archive("coco.npz")
    train = np.flatnonzero(~data["is_test"])
    rows = np.random.default_rng(0).choice(train, 400, replace=False)
    X = data["features"][rows].astype(np.float32) * data["scale"]
    Y = np.unpackbits(data["labels"][rows], axis=1)[:, : len(data["label_names"])]
    findings = FeatureAnnotator(random_state=0).fit(X, Y).audit(kind="wrong")
    assert len(findings) <= 2  # with 50 % and more
    assert max((finding.confidence for finding in findings), default=0) < 0.8
