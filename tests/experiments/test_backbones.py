"""What features bring: better ones are told from worse ones, on the same held-out images."""

import numpy as np
import pytest
import scipy.sparse

from experiments.__main__ import main
from experiments.backbones import METHODS, RESAMPLES, measured
from experiments.bootstrap import compare
from tests.features.joint import write_colors, write_joint_encoder


def test_features_that_show_the_labels_are_ahead_of_those_that_hardly_do():
    rng = np.random.default_rng(0)
    labels = rng.random((120, 5)) < 0.3
    shown = np.hstack([labels, 1 - labels]) + 0.3 * rng.random((120, 10))
    hardly = np.hstack([labels, 1 - labels]) + 3 * rng.random((120, 10))
    Y = scipy.sparse.csr_array(labels, dtype=np.float32)
    train = np.arange(10, 120)  # the others are not looked at
    better, worse = (measured(X.astype(np.float32), Y, train, 60) for X in (shown, hardly))
    for values, resampled in (better, worse):
        assert values.shape == (len(METHODS),)
        assert resampled.shape == (len(METHODS), RESAMPLES)
        assert ((values > 0) & (values <= 1)).all()
    for k in range(len(METHODS)):
        gain = compare(better[1][k], worse[1][k], better[0][k], worse[0][k])
        assert gain.low > 0.1
        assert gain.low <= gain.value <= gain.high
    same = measured(shown.astype(np.float32), Y, train, 60)
    np.testing.assert_allclose(same[0], better[0], atol=1e-6)


def test_a_row_for_any_backbone_and_folder(tmp_path, capsys):
    pytest.importorskip("tokenizers")
    encoder = write_joint_encoder(tmp_path / "encoder") / "image.onnx"
    write_colors(tmp_path / "photos", spread=120)  # no two are nearly the same picture
    folders = ["--folder", str(tmp_path / "photos"), "--results", str(tmp_path / "results")]
    main(["backbones", "--backbone", str(encoder), *folders])
    output = capsys.readouterr().out
    head, row = (line.strip("| ").split(" | ") for line in output.splitlines()[2::2])
    assert output.startswith("24 tagged photographs")
    values = dict(zip(head, row, strict=True))
    assert values["backbone"] == "`image.onnx`"
    assert values["features"] == "3"
    # a colour is easy to tell, the other tag is not
    assert 60 < float(values["MAP"]) < 100
    assert float(values["ms"]) >= 0
