"""Everything runs on small synthetic and real data; a rerun skips finished work."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from experiments.__main__ import main
from experiments.comparisons import holm
from experiments.config import CONFIGS, find_config
from experiments.published import gain, number, rows
from experiments.run import all_steps, run
from experiments.study import Study
from experiments.tables import all_tables
from tests.conftest import needs_wordnet

DATA = Path(os.environ.get("TAGKIN_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The smoke set, run once."""
    folder = tmp_path_factory.mktemp("smoke")
    where = ["--results", str(folder / "results"), "--report", str(folder / "report")]
    main(["run", "smoke", *where])
    return folder


def written_at(folder):
    """When each result was written."""
    return {p: p.stat().st_mtime_ns for p in (folder / "results").rglob("*.npz")}


@needs_wordnet
def test_every_table_and_figure_is_there(finished):
    folder = finished / "report"
    tables = {path.stem for path in folder.glob("*.csv")}
    wanted = {"1-expert", "1-expert-beside-paper", "1-expert-gains", "2-tags", "2-tags-gains"}
    wanted |= {"2-tags-beside-paper", "2-denoising", "3-kernels", "4-neighbors-expert"}
    wanted |= {"4-neighbors-tags", "5-subsampling-expert", "5-subsampling-tags", "overlap"}
    wanted |= {"5-timing-expert", "5-timing-tags", "0-dataset"}
    assert tables == {f"smoke-{name}" for name in wanted}
    figures = {path.stem for path in folder.glob("*.svg")}
    kinds = ("expert", "tags")
    drawn = {f"{name}-{k}" for name in ("gains", "neighbors", "subsampling") for k in kinds}
    assert figures == {f"smoke-{name}" for name in drawn | {"timing", "overlap", "map"}}
    noted = json.loads((folder / "made.json").read_text())
    assert set(noted) == {path.name for path in folder.iterdir()} - {"made.json"}


@needs_wordnet
def test_a_rerun_computes_nothing(finished, monkeypatch):
    before = written_at(finished)
    monkeypatch.setattr("experiments.study.open_data", lambda *_: pytest.fail("data was read"))
    study = Study(find_config("smoke"), finished / "results")
    study.store.read_only = True
    assert len(list(all_tables(study))) == 16
    run_again = Study(find_config("smoke"), finished / "results")
    for step in all_steps(run_again):
        step.run()
    assert written_at(finished) == before


@needs_wordnet
def test_an_interrupted_run_resumes(finished):
    study = Study(find_config("smoke"), finished / "results")
    lost = sorted(study.store.folder.glob("metrics/*NNvot*"))[0]
    before = np.load(lost)
    values = {name: before[name] for name in before.files}
    times = written_at(finished) | {lost: 0}
    lost.unlink()
    run(study)
    after = np.load(lost)
    assert all(np.array_equal(values[name], after[name]) for name in values)
    assert written_at(finished) | {lost: 0} == times


@needs_wordnet
def test_tables_say_what_the_scores_say(finished):
    """The table's MAP is that of the stored scores."""
    from tagkin.evaluation import mean_average_precision

    study = Study(find_config("smoke"), finished / "results")
    table = next(table for table in all_tables(study) if table.name == "smoke-1-expert")
    row = next(row for row in table.rows if row[:2] == ["semantic", "NNvot"])
    setting = study.setting("expert", "linear", "NNvot")
    scores = study.scores("expert", "linear", "NNvot", setting)
    assert row[3] == pytest.approx(100 * mean_average_precision(study.expert.truth, scores))


@needs_wordnet
def test_a_little_of_flickr8k(tmp_path, monkeypatch):
    if not (DATA / "flickr8k.npz").exists():
        pytest.skip("flickr8k.npz is not in ../shared/data; set TAGKIN_DATA to where it is")
    monkeypatch.setenv("TAGKIN_DATA", str(DATA))
    config = tmp_path / "little.toml"
    smoke = (CONFIGS / "smoke.toml").read_text().replace('"synthetic"', '"flickr8k"')
    for many, soon_found in {
        "per_label = [1, 2]": "per_label = [2]",
        "decays = [1.0, 3.0]": "decays = [1.0]",
        "costs = [0.1, 1.0]": "costs = [1.0]",
        "max_learned_neighbors = 20": "max_learned_neighbors = 5",
    }.items():
        assert many in smoke
        smoke = smoke.replace(many, soon_found)
    config.write_text(smoke + "n_known = 100\nn_new = 60\nsub_known = 60\nsub_new = 40\n")
    study = Study(find_config(str(config)), tmp_path / "results")
    for step in all_steps(study):
        if step.name in ("settings, visual", "settings, linear", "NNvot, visual", "NNvot, linear"):
            step.run()
    measured = study.measured(
        "expert", "linear", "NNvot", study.setting("expert", "linear", "NNvot")
    )
    assert 0.05 < measured.values[0] < 0.5


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda p: p.stem)
def test_configs_say_their_command(path):
    config = find_config(path.stem)
    text = path.read_text()
    assert f"python -m experiments run {path.stem}" in text or "experiments run smoke" in text
    for dataset in config.stands_for:
        assert any(rows("expert", dataset=dataset))
    for dataset in config.stands_for_tags:
        assert any(rows("tags", dataset=dataset))


def test_a_wrong_config_is_named(tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text('dataset = "synthetic"\nstands_for = []\nlandmarks = 3\n')
    with pytest.raises(SystemExit, match="unknown settings: landmarks"):
        find_config(str(path))
    with pytest.raises(SystemExit, match="Available: coco"):
        find_config("nothing")


def test_published_numbers():
    assert number("expert", "MAP", dataset="NUS-WIDE", group="semantic", method="TagProp") == 52.2
    assert number("expert", "n_plus", dataset="ESP-GAME", group="visual", method="SVM") == 224
    assert number("tags", "recall", dataset="NUS-WIDE", group="semantic", method="TagRel") == 55.1
    assert number("denoising", "raw", method="2PKNN") == 42.9
    wanted = {"dataset": "NUS-WIDE", "kernel": "ontology", "method": "2PKNN"}
    assert number("kernels", "recall", **wanted) == 51.1
    assert gain("tags", "MAP", "MIRFlickr-25k", "SVM") == pytest.approx(3.3)
    assert number("expert", "MAP", dataset="IAPR-TC12", method="MBRM") is None


def test_holm_is_its_definition():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def test_the_folder_of_the_report_is_said(finished, capsys):
    where = ["--results", str(finished / "results"), "--report", str(finished / "report")]
    main(["run", "smoke", *where])
    assert f"Tables and figures of smoke: {finished / 'report'}\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["run", "moments", "ablation", "trust", "words"])
def test_without_data_one_sentence_says_what_is_missing(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_DATA", str(tmp_path / "data"))
    others = {"run": ["mirflickr"], "moments": ["--results", str(tmp_path)]}.get(name, [])
    message = r"is (not (in|there)|missing).* Set TAGKIN_DATA to the folder"
    with pytest.raises(SystemExit, match=message):
        main([name, *others])


@pytest.mark.parametrize("name", ["loop", "names"])
def test_a_set_that_is_not_there_is_named(name, tmp_path, monkeypatch):
    (tmp_path / "photos").mkdir()
    monkeypatch.setenv("TAGKIN_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"is called nonsense\. There are photos"):
        main([name, "nonsense"])
