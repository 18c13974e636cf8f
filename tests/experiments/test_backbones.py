"""A row of the table of backbones."""

import pytest

from experiments.__main__ import main
from tests.features.joint import write_colors, write_joint_encoder


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
