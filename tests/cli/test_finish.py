"""tagkin finish and tagkin incomplete."""

from pathlib import Path

import pytest

from .conftest import lines
from .synthetic import write_tag_file


def done(result) -> str:
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def tk(run, world, tmp_path):
    """Run a command on a collection, of which the first half of the photographs has tags."""
    with_it = ("--catalogue", tmp_path / "own.sqlite")
    half = dict([*world.tags_of.items()][: len(world.tags_of) // 2])
    tags = write_tag_file(tmp_path / "half.jsonl", half)
    done(run("scan", world.photos, "--tags", tags, *with_it))
    done(run("suggest", "--threshold", "0.05", *with_it))
    return lambda *words: run(*words, *with_it)


def untagged(world) -> list[str]:
    return sorted([*world.tags_of][len(world.tags_of) // 2 :])


def test_finish_photographs_and_undo(tk, world):
    first, second = (world.photos / name for name in untagged(world)[:2])
    before = lines(done(tk("status", "--json")))[0]["n_suggestions"]
    (would,) = lines(done(tk("finish", first, second, "--dry-run", "--json")))
    assert would["run"] is None
    assert len(would["finished"]) == 2
    assert would["rejected"]
    assert first.name in done(tk("finish", first, "--dry-run"))
    (did,) = lines(done(tk("finish", first, second, "--json")))
    assert did == would | {"run": did["run"], "dry_run": False}
    assert {Path(file).name for file in did["finished"]} == {first.name, second.name}
    assert {"file", "tag", "confidence", "suggested_by", "copies"} == set(did["rejected"][0])
    state = lines(done(tk("status", "--json")))[0]
    assert (state["n_finished"], state["n_suggestions"]) == (2, before - len(did["rejected"]))
    assert "Finished      2 photographs" in done(tk("status"))
    n = len(did["rejected"])
    result = done(tk("history")).replace("\n", " ")
    assert f"Finished 2 photographs, and rejected {n} suggestions" in " ".join(result.split())
    assert f"finished by you (run {did['run']}): no other tags" in done(tk("explain", first))
    assert lines(done(tk("explain", first, "--json")))[0]["finished"]["run"] == did["run"]
    assert "There is nothing to finish" in tk("finish", first).stderr
    result = tk("undo")
    text = f"Undid run {did['run']} (finish): 2 finished photographs and {n} decisions."
    assert text in result.stderr
    assert lines(done(tk("status", "--json")))[0]["n_suggestions"] == before
    (undone,) = lines(done(tk("undo", "--run", str(did["run"] + 1), "--json")))  # redo
    assert len(undone["finished"]) == 2


def test_finish_needs_to_know_what(tk):
    result = tk("finish")
    assert result.exit_code == 2
    assert "say what is finished" in result.stderr
    assert "There is no tag 'rde'" in tk("finish", "--tag", "rde").stderr


def test_finish_the_whole_collection_and_a_tag(tk, world):
    result = tk("finish", "--tag", "red")
    assert '"red" rejected on' in result.stderr
    assert 'Finished "red": rejected on' in done(tk("history"))
    (all_of_them,) = lines(done(tk("finish", world.photos, "--json")))
    assert len(all_of_them["finished"]) == len(world.tags_of)
    assert lines(done(tk("status", "--json")))[0]["n_suggestions"] == 0
    *_, suggested = lines(done(tk("suggest", "--threshold", "0.05", "--json")))
    assert suggested["suggestions"] == 0


def test_an_imported_finished_tag_is_undone_with_its_rejections(tk, run, world, tmp_path):
    done(tk("finish", "--tag", "red"))
    done(tk("export", tmp_path / "kept.jsonl"))
    fresh = ("--catalogue", tmp_path / "fresh.sqlite")
    done(run("scan", world.photos, *fresh))
    done(run("import", tmp_path / "kept.jsonl", *fresh))
    assert "Imported 28 decisions" in done(run("history", *fresh))
    assert "(import): 28 decisions." in run("undo", *fresh).stderr


def test_incomplete_and_undo(tk, world):
    result = tk("incomplete", "20024")
    assert result.exit_code == 1
    assert "There is no folder" in result.stderr
    result = tk("incomplete", "--dry-run")
    assert "the tags in the whole collection are incomplete" in result.stderr
    n = len(world.tags_of) // 2
    (did,) = lines(done(tk("incomplete", "--json")))
    assert did["photographs"] == n
    assert "declared incomplete already" in tk("incomplete").stderr
    assert "Incomplete    tags in the whole collection" in done(tk("status"))
    assert "Declared incomplete: the tags in the whole collection" in done(tk("history"))
    assert f"Undid run {did['run']} (incomplete)" in tk("undo").stderr
    assert lines(done(tk("status", "--json")))[0]["incomplete_folders"] == []


def test_train_says_what_few_complete_photographs_mean(tk, world):
    assert "complete tags" not in tk("train", "--dry-run").stderr  # all tagged ones are complete
    done(tk("incomplete"))
    for options in ((), ("--dry-run",)):
        result = tk("train", *options)
        assert (
            "0 photographs have complete tags, and training needs 50. Until then," in result.stderr
        )
        done(result)
    name = next(iter(world.tags_of))
    done(tk("finish", world.photos / name))
    (learned,) = lines(done(tk("train", "--json")))
    assert learned["photographs"]["complete"] == 1
    done(tk("suggest"))
