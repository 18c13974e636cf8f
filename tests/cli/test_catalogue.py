"""A catalogue from the command line: scan, decide, ask, and carry elsewhere."""

import csv
import io
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tagkin
from tagkin.catalogue import open_catalogue
from tests.catalogue.suggested import new_suggestion, store

from .conftest import call, lines
from .synthetic import make_photographs, write_sidecar, write_tag_file


def done(result) -> str:
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def on(run, catalogue):
    """Run a command on the catalogue; its JSON."""
    return lambda *args: lines(done(run(*args, "--json", "--catalogue", catalogue)))


def test_a_folder_is_scanned_and_found_again_without_a_word(run, tmp_path, data_folder):
    tags = make_photographs(tmp_path / "photos", n_each=1)
    write_sidecar(tmp_path / "photos" / next(iter(tags)), ["red", "Red"])
    result = done(run("scan", "photos"))
    assert "6, 5 of them without tags" in result
    (scan,) = lines(done(run("scan", "--json")))
    assert (scan["photographs"], scan["folder"]) == (6, "photos")
    assert Path(tmp_path, scan["catalogue"]).is_relative_to(data_folder / "catalogues")
    assert "Red" in done(run("tags", "list"))
    shutil.move(tmp_path / "photos", tmp_path / "elsewhere")
    result = run("scan")
    assert result.exit_code == 1
    assert "If the folder was moved" in result.stderr
    (again,) = lines(done(run("scan", "elsewhere", "--json")))
    assert (again["catalogue"], again["added"]) == (scan["catalogue"], [])


def test_which_catalogue_is_meant(run, tmp_path, monkeypatch):
    assert "There is no catalogue yet" in run("status").stderr
    for name in ("one", "two"):
        make_photographs(tmp_path / name, n_each=1)
        done(run("scan", name))
    assert "catalogues of 2 folders" in run("status").stderr
    assert lines(done(run("status", "one", "--json")))[0]["root"] == "one"
    monkeypatch.chdir(tmp_path / "two")
    assert lines(done(run("status", "--json")))[0]["root"] == str(tmp_path / "two")


def test_a_folder_of_which_nothing_is_learned_is_not_one_that_could_be_meant(run, tmp_path):
    make_photographs(tmp_path / "one", n_each=1)
    done(run("scan", "one"))
    (tmp_path / "two").mkdir()
    for path in (tmp_path / "one").glob("*.jpg"):
        shutil.copy(path, tmp_path / "two")
    (tmp_path / "bad.csv").write_text("no tag file")
    for command in (("suggest", "two"), ("scan", "two", "--tags", "bad.csv")):
        result = run(*command)
        assert result.exit_code == 1
        assert "two is not a collection yet: tagkin scan two" in result.stderr
        assert lines(done(run("status", "--json")))[0]["root"] == "one"
    done(run("scan", "two"))
    assert run("scan", "two", "--tags", "bad.csv").exit_code == 1
    assert "catalogues of 2 folders" in run("status").stderr


def test_a_catalogue_that_is_named_makes_no_folder(run, tmp_path):
    make_photographs(tmp_path / "photos", n_each=1)
    place = tmp_path / "nowhere" / "deep" / "x.sqlite"
    result = run("scan", "photos", "--catalogue", place)
    assert (result.exit_code, "There is no folder" in result.stderr) == (1, True)
    assert not (tmp_path / "nowhere").exists()


def test_a_catalogue_that_is_named_changes_no_default(run, tmp_path, monkeypatch):
    make_photographs(tmp_path / "photos", n_each=1)
    (first,) = lines(done(run("scan", "photos", "--json")))
    done(run("accept", "photos/red-circle-0.jpg", "--tag", "mine"))
    named = ("--catalogue", "other.sqlite")
    assert run("scan", "photos", *named).stderr == ""
    for command in ("status", "scan"):
        assert lines(done(run(command, "--json")))[0]["catalogue"] == first["catalogue"]
        assert run(command, *named).stderr == ""
    assert lines(done(run("status", "--json")))[0]["n_accepted"] == 1
    # nor for a folder in the folder
    make_photographs(tmp_path / "photos" / "inner", n_each=1)
    done(run("scan", "photos/inner", "--catalogue", "inner.sqlite"))
    monkeypatch.chdir(tmp_path / "photos" / "inner")
    assert lines(done(run("status", "--json")))[0]["root"] == str(tmp_path / "photos")
    # the first one of a folder is its own, wherever it is
    monkeypatch.chdir(tmp_path)
    make_photographs(tmp_path / "more", n_each=1)
    done(run("scan", "more", "--catalogue", "more.sqlite"))
    assert lines(done(run("scan", "more", "--json")))[0]["catalogue"] == "more.sqlite"


@pytest.mark.parametrize("command", ["scan", "review"])
def test_a_folder_without_photographs_leaves_no_catalogue(run, tmp_path, data_folder, command):
    make_photographs(tmp_path / "photos", n_each=1)
    done(run("scan", "photos"))
    (tmp_path / "mistyped").mkdir()
    result = run(command, "mistyped")
    assert result.exit_code == 1
    assert "No photograph in" in result.stderr
    assert len(list((data_folder / "catalogues").glob("*.sqlite"))) == 1
    assert lines(done(run("status", "--json")))[0]["root"] == "photos"


def test_suggestions_are_accepted_and_rejected_by_filters(on, run, catalogue):
    (would,) = on("accept", "--tag", "red", "--at-least", "0.5", "--dry-run")
    assert would["run"] is None
    assert would["decisions"]
    (did,) = on("accept", "--tag", "red", "--at-least", "0.5")
    assert did["decisions"] == would["decisions"]
    assert all(
        decision["tag"] == "red" and decision["confidence"] >= 0.5 for decision in did["decisions"]
    )
    (against,) = on("reject", "--below", 1)
    (status,) = on("status")
    assert status["n_accepted"] == len(did["decisions"])
    assert status["n_rejected"] == len(against["decisions"]) > 0
    assert status["n_suggestions"] == 0
    whats = [past["what"] for past in on("history")]
    assert whats == ["reject", "accept", "suggest", "train", "scan"]
    # what was decided on is not suggested again, and what was accepted in bulk teaches nothing
    *_, again = on("suggest", "--threshold", "0.1")
    assert again["taught"] == 0
    decided = {
        (decision["file"], decision["tag"])
        for part in (did, against)
        for decision in part["decisions"]
    }
    (left,) = on("accept", "--at-least", 0)
    assert not decided & {(decision["file"], decision["tag"]) for decision in left["decisions"]}
    result = run("accept", "--at-least", 0, "--catalogue", catalogue)
    assert "nothing to accept" in result.stderr


def test_a_filter_has_to_be_given(run, world, catalogue):
    result = run("accept", "--catalogue", catalogue)
    assert result.exit_code == 2
    assert "--at-least" in result.stderr
    assert run("accept", "nowhere", "--catalogue", catalogue).exit_code == 1
    # a mistake in the command decides nothing: here an option is taken for a photograph
    photo = world.photos / next(iter(world.tags_of))
    result = run("accept", "--catalogue", catalogue, "--", photo, world.photos / "--tag")
    assert (result.exit_code, "--tag is not in the catalogue" in result.stderr) == (1, True)
    assert "Did you mean red" in run("accept", "--tag", "rad", "--catalogue", catalogue).stderr


def test_explain_tells_who_says_so(on, run, world, catalogue):
    names = list(world.tags_of)
    tagged, untagged = world.photos / names[0], world.photos / names[1]
    done(run("accept", untagged, "--tag", "red", "--catalogue", catalogue))
    (of_file,) = on("explain", tagged)
    in_files = [tag for tag in of_file["tags"] if tag["state"] == "found"]
    assert sorted(tag["tag"] for tag in in_files) == sorted(world.tags_of[names[0]])
    assert all(tag["said"][0]["file"].endswith("some.jsonl") for tag in in_files)
    (decided,) = on("explain", untagged)
    red = next(tag for tag in decided["tags"] if tag["tag"] == "red")
    assert [source["who"] for source in red["said"]] == ["run", "person"]
    assert len(red["said"][0]["model"]) == 64
    assert red["said"][0]["confidence"] == red["confidence"]
    assert 0 < len(red["kin"]) <= 6
    assert 0 <= red["name_share"] <= red["name_share"] + red["readout_share"] <= 1 + 1e-4
    text = done(run("explain", untagged, "--catalogue", catalogue))
    assert "accepted by you" in text
    assert re.search(r"suggested (\d+ % by [a-z ]+(, )?)+", text)


def test_a_suggestion_that_its_name_makes_says_so_first(run, catalogue, world):
    with open_catalogue(catalogue, write=True) as opened:
        path, number = opened.database.row(
            "SELECT path, content FROM photographs ORDER BY path LIMIT 1"
        )
        kin = [(number, 0.01)]
        with opened.database.run("suggest") as made:
            named = new_suggestion("seaside", 0.9, kin, 0.9, 0.09)
            store(opened, made.id, [(number, [named])])
        photo = opened.absolute(path)
    text = done(run("explain", photo, "--catalogue", catalogue))
    line, shares, source = text[text.index("seaside") :].splitlines()[:3]
    assert line == "seaside  suggested by its name, 90 % confidence"
    assert shares.strip().startswith("suggested 90 % by the meaning of the tag's name")
    assert "suggested by run" in source
    assert "kin:" not in text[text.index("seaside") :]  # kin that add 1 % prove nothing


def test_suggestions_of_a_catalogue_are_listed(on, run, catalogue):
    *photographs, counted = on("suggest", "--threshold", "0.3")
    asked = ("suggest", "--threshold", "0.3", "--catalogue", catalogue)
    rows = list(csv.DictReader(io.StringIO(done(run(*asked, "--csv")))))
    assert len(rows) == counted["suggestions"] > 0
    assert sum(float(row["confidence"]) for row in rows) == pytest.approx(counted["expected"])
    would = list(csv.DictReader(io.StringIO(done(run(*asked, "--csv", "--dry-run")))))
    assert would == rows
    pairs = [(photo["file"], s["tag"]) for photo in photographs for s in photo["suggestions"]]
    assert pairs == [(row["file_name"], row["tag"]) for row in rows]
    shown, summary = done(run(*asked)).split("\n\n")[:2]
    assert [line.split("  ")[0] for line in shown.splitlines()][:20] == list(dict(pairs))[:20]
    assert f"  {rows[0]['tag']} {float(rows[0]['confidence']):.0%}"[:-1] in shown
    assert summary.startswith(f"{len(rows)} suggestions for {len(dict(pairs))} photographs")
    first = rows[0]
    (explained,) = on("explain", first["file_name"])
    (same,) = (tag for tag in explained["tags"] if tag["tag"] == first["tag"])
    for name in ("confidence", "name_share", "readout_share"):
        assert same[name] == pytest.approx(float(first[name]), abs=1e-5)
    shown = [kin["file"] for kin in same["kin"]]  # those that carry a real share of the score
    assert shown == first["kin"].split("|")[: len(shown)]
    (history, *_) = on("history")
    assert history["outcome"]["suggestions"] == len(rows)


def test_without_suggestions_there_is_nothing_to_accept(run, catalogue):
    result = done(run("suggest", "--threshold", "1", "--catalogue", catalogue))
    assert "No suggestion for " in result
    assert "Next:" not in result
    assert "tagkin suggest --threshold 0.2" in result
    status = done(run("status", "--catalogue", catalogue))
    assert "none to decide on" in status
    assert "Next: tagkin review" in status  # not suggest, which would find nothing again
    assert "Next: tagkin accept" in done(run("suggest", "--catalogue", catalogue))


def test_a_folder_that_is_not_there_is_named_and_its_collection_known(run, tmp_path):
    for name in ("one", "two"):
        make_photographs(tmp_path / name, n_each=1)
        done(run("scan", name))
    for command in (("accept", "--at-least", "0"), ("write",), ("finish",)):
        result = run(command[0], "one/2024", *command[1:])
        assert result.exit_code == 1
        assert "2024" in result.stderr
        assert "catalogues of 2 folders" not in result.stderr


def test_a_tag_can_be_given_by_hand(on, world):
    photo = world.photos / "red-circle-1.jpg"
    (did,) = on("accept", photo, "--tag", "by hand")
    assert did["decisions"][0]["confidence"] is None
    tags = {tag["name"]: tag for tag in on("tags", "list")}
    assert tags["by hand"]["n_accepted"] == 1
    assert 0 <= tags["red"]["quality"] <= 1


def test_history_speaks_of_what_was_done(on, run, world, catalogue):
    (did,) = on("accept", "--tag", "red", "--at-least", "0.5")
    n, n_files = (len(did["decisions"]), len({decision["file"] for decision in did["decisions"]}))
    on("undo")
    first = world.photos / next(iter(world.tags_of))
    on("reject", first, "--tag", "circle")
    rows = done(run("history", "-n", 3, "--catalogue", catalogue)).splitlines()[2:]
    entries = [re.sub(r" +", " ", row).strip().partition(":")[2].partition(" ")[2] for row in rows]
    run_number = did["run"]
    assert entries == [
        "Rejected 1 tag on 1 photograph",
        f"Undid run {run_number}",
        f"Accepted {n} tags on {n_files} photographs; undone by run {run_number + 1}",
    ]


def test_tags_are_changed(on, run, catalogue):
    (would,) = on("tags", "rename", "red", "scarlet", "--dry-run")
    assert (would["run"], would["into"]) == (None, "scarlet")
    on("tags", "rename", "red", "scarlet")
    on("tags", "merge", "green", "blue", "--into", "cold")
    on("tags", "forget", "circle")
    result = done(run("history", "--catalogue", catalogue))
    assert re.search(r"(Today|Yesterday) \d\d:\d\d", result)
    for text in (
        'Forgot "circle"',
        'Merged "blue", "green" into "cold"',
        'Renamed "red" to "scarlet"',
        "Suggested ",
        "Learned 5 tags from 21 photographs",
        "Scanned 42 photographs: 42 new",
    ):
        assert text in result, text
    assert {tag["name"] for tag in on("tags", "list")} == {"scarlet", "cold", "square", "circle"}
    assert [tag["name"] for tag in on("tags", "list") if tag["is_forgotten"]] == ["circle"]
    on("tags", "restore", "circle")
    on("accept", "--tag", "scarlet", "--at-least", "0.1")
    (learned,) = on("train")
    assert learned["tags"]["learned"] == 4
    *_, suggested = on("suggest", "--threshold", "0.1")
    assert suggested["suggestions"] > 0
    assert {tag["name"] for tag in on("tags", "list") if tag["n_suggested"]} <= {
        "cold",
        "square",
        "circle",
        "scarlet",
    }
    assert "name,n_found" in done(run("tags", "list", "--csv", "--catalogue", catalogue))


def test_near_duplicates_are_offered(run, tmp_path):
    names = list(make_photographs(tmp_path / "photos", n_each=1))
    for name, tags in zip(names, (["dog"], ["dog"], ["dogs"], ["Dog"]), strict=False):
        write_sidecar(tmp_path / "photos" / name, tags)
    done(run("scan", "photos"))
    result = run("tags", "list")
    assert "may be duplicates" in result.stderr
    offered = done(run("tags", "duplicates"))
    assert "tagkin tags merge Dog --into dog  # spelling" in offered
    groups = lines(done(run("tags", "duplicates", "--json")))
    assert {"keep": "dog", "others": ["Dog"], "why": "spelling"} in groups


def test_edits_of_tags_are_undone(on, run, catalogue):
    before = on("tags", "list")
    on("tags", "forget", "red")
    on("tags", "rename", "green", "colour|green")
    assert {tag["name"] for tag in on("tags", "list") if tag["is_forgotten"]} == {"red"}
    assert "forgotten" in done(run("tags", "list", "--catalogue", catalogue))
    result = done(run("history", "--catalogue", catalogue))
    assert 'Renamed "green" to "colour|green"' in result
    assert 'Forgot "red"' in result
    (undone,) = on("undo")
    assert (undone["what"], undone["tags"]) == ("tags rename", ["green"])
    undo = run("undo", "--catalogue", catalogue)
    assert '(tags forget): "red" as before.' in undo.stderr
    assert on("tags", "list") == before


@pytest.mark.skipif(find_spec("wn") is None, reason="wn is not installed (the extra names)")
def test_tags_that_mean_the_same_are_offered_apart(run, tmp_path):
    names = list(make_photographs(tmp_path / "photos", n_each=1))
    for name, tags in zip(names, (["car"], ["car"], ["automobile"]), strict=False):
        write_sidecar(tmp_path / "photos" / name, tags)
    done(run("scan", "photos"))
    assert "automobile" not in run("tags", "list").stderr
    offered = run("tags", "duplicates")
    assert done(offered) == "tagkin tags merge automobile --into car  # meaning\n"
    assert "mean the same" in offered.stderr
    group = {"keep": "car", "others": ["automobile"], "why": "meaning"}
    assert lines(done(run("tags", "duplicates", "--json"))) == [group]
    assert "automobile" in done(run("tags", "list"))  # nothing is merged


def test_decisions_travel(on, run, catalogue, tmp_path, world):
    (did,) = on("accept", "--tag", "red", "--at-least", "0.1")
    done(run("export", "kept.jsonl", "--catalogue", catalogue))
    fresh = tmp_path / "fresh.sqlite"
    done(run("scan", world.photos, "--catalogue", fresh))
    (would,) = lines(done(run("import", "kept.jsonl", "--dry-run", "--json", "--catalogue", fresh)))
    (came,) = lines(done(run("import", "kept.jsonl", "--json", "--catalogue", fresh)))
    assert came | {"dry_run": True} == would
    assert came["decisions"] == len(did["decisions"])
    (status,) = lines(done(run("status", "--json", "--catalogue", fresh)))
    assert status["n_accepted"] == len(did["decisions"])
    assert "Imported nothing: " in run("import", "kept.jsonl", "--catalogue", fresh).stderr
    assert run("import", "nowhere.jsonl", "--catalogue", fresh).exit_code == 1
    if os.path.exists("/dev/zero"):
        assert "is not a file" in run("import", "/dev/zero", "--catalogue", fresh).stderr


def test_a_second_writer_is_told_who_is_first(run, catalogue):
    with open_catalogue(catalogue, write=True, command="review"):
        result = run("accept", "--at-least", 0, "--catalogue", catalogue)
        assert result.exit_code == 1
        assert "`tagkin review` (process" in result.stderr
        done(run("status", "--catalogue", catalogue))  # to read is always fine
        done(run("accept", "--at-least", 0, "--dry-run", "--catalogue", catalogue))


def test_a_catalogue_makes_itself(run, world, tmp_path, data_folder):
    """One command on a folder that was never seen: it is scanned and learned from."""
    photos = shutil.copytree(world.photos, tmp_path / "photos")
    write_tag_file(photos / "metadata.jsonl", dict([*world.tags_of.items()][::2]))
    (would,) = lines(done(run("train", "photos", "--dry-run", "--json")))
    assert would["photographs"] == {"found": 42, "tagged": 21, "complete": 21}
    assert not data_folder.exists()
    result = run("suggest", "photos", "--threshold", "0.1", "--json")
    *_, suggested = lines(done(result))
    assert result.stderr == "Learned 5 tags from 21 photographs (run 2).\n"
    assert (suggested["run"], suggested["photographs"]) == (3, 42)
    assert suggested["suggestions"] > 0
    for command in (("evaluate",), ("audit",), ("train",), ("status",)):
        assert run(*command, "photos").exit_code == 0, command
    whats = [past["what"] for past in lines(done(run("history", "photos", "--json")))]
    assert whats == ["train", "suggest", "train", "scan"]


def test_a_folder_in_a_collection_is_a_part_of_it(run, world, tmp_path):
    photos = shutil.copytree(world.photos, tmp_path / "photos")
    write_tag_file(photos / "metadata.jsonl", dict([*world.tags_of.items()][::2]))
    make_photographs(photos / "later", n_each=1, seed=5)
    done(run("train", "photos"))
    *_, part = lines(done(run("suggest", "photos/later", "--json")))
    *_, whole = lines(done(run("suggest", "photos", "--json")))
    assert (part["photographs"], whole["photographs"]) == (6, 48)
    for command in ("train", "evaluate", "audit"):
        result = run(command, "photos/later")
        assert (result.exit_code, "Name the whole collection: photos" in result.stderr) == (1, True)


def test_a_folder_that_is_not_there_is_an_error(run, tmp_path):
    """Even if there is only one collection, which would be meant without a folder."""
    make_photographs(tmp_path / "photos", n_each=1)
    done(run("scan", "photos"))
    for command in ("status", "history", "undo", "train", "suggest", "evaluate", "audit"):
        result = run(command, "phtoos")
        assert result.exit_code == 1, command
        assert "phtoos" in result.stderr, command


def test_tags_in_the_history_have_quotes(on, run, world, catalogue):
    photo = world.photos / next(iter(world.tags_of))
    on("accept", photo, "--tag", "Paris, France")
    on("tags", "forget", "Paris, France", "red")
    text = done(run("history", "-n", 1, "--catalogue", catalogue))
    assert '"Paris, France"' in text
    assert '"red"' in text


def test_what_a_model_is_asked_is_asked_of_that_of_the_catalogue(on, run, world, catalogue):
    photo = world.photos / next(iter(world.tags_of))
    (near,) = on("find", "--like", photo, "-n", "3")
    assert len(near["similar"]) == 3
    (status,) = on("status")
    assert len(tagkin.load(status["model_folder"]).files_) == len(world.tags_of) // 2
    findings = on("audit", "--kind", "wrong", "-n", "4")
    assert len(findings) == 4
    on("reject", findings[1]["file"], "--tag", findings[1]["tag"])
    left = on("audit", "--kind", "wrong", "-n", "4")
    assert left[:3] == [findings[0], *findings[2:]]
    assert len(left) == 4


def test_an_audit_names_tags_as_they_are_called_now(on, run, catalogue):
    """The model learned them under the names that they had."""

    def doubted_files(tag: str, *kind: str) -> list[str]:
        return [
            finding["file"] for finding in on("audit", "-n", 1000, *kind) if finding["tag"] == tag
        ]

    before = doubted_files("red")
    assert before
    done(run("tags", "rename", "red", "crimson", "--catalogue", catalogue))
    assert (doubted_files("red"), doubted_files("crimson")) == ([], before)
    on("reject", before[0], "--tag", "crimson")
    assert doubted_files("crimson") == before[1:]
    done(run("tags", "merge", "crimson", "--into", "green", "--catalogue", catalogue))
    wrong, missing = (doubted_files("green", "--kind", kind) for kind in ("wrong", "missing"))
    assert wrong
    assert missing
    assert not {*wrong} & {*missing}  # what carries one of the two lacks neither
    assert len({*wrong}) == len(wrong)
    assert len({*missing}) == len(missing)
    done(run("tags", "forget", "green", "--catalogue", catalogue))
    assert doubted_files("green") == []


def test_its_photographs_are_those_of_the_catalogue_wherever_the_model_looks(
    run, world, catalogue, tmp_path
):
    copy, model = tmp_path / "copy", catalogue.with_suffix(".model")
    shutil.copytree(world.photos, copy)
    photo = world.photos / "red-circle-0.jpg"
    annotator = tagkin.load(model)
    annotator.relocate(copy)
    ((nearest,),) = annotator.similar([photo], 1)
    assert Path(nearest.file).resolve().is_relative_to(copy)
    near = ("--json", "-n", "1")
    annotator.save(model, overwrite=True)
    (answer,) = lines(done(run("find", "--like", photo, *near, "--catalogue", catalogue)))
    assert Path(answer["similar"][0]["file"]).resolve().is_relative_to(world.photos)


def test_without_a_model_the_next_step_is_named(run, tmp_path):
    make_photographs(tmp_path / "photos", n_each=1)
    done(run("scan", "photos"))
    for command in (
        ("find", "--like", "photos/red-circle-0.jpg"),
        ("suggest", "--dry-run"),
        ("audit",),
    ):
        assert "`tagkin train` learns one" in run(*command).stderr
    for command in ("train", "suggest", "evaluate"):
        assert "None of the 6 photographs" in run(command).stderr
    assert "Next: tagkin suggest --vocabulary common" in done(run("status"))
    assert "tagkin suggest --vocabulary common" in run("train").stderr
    write_sidecar(tmp_path / "photos" / "red-circle-0.jpg", ["red"])
    done(run("scan"))
    assert "Next: tagkin train" in done(run("status"))


def test_a_decision_is_learned_from(on, world, catalogue):
    """Accepted tags count at once, and are tags like others for the next training."""
    before = on("train")[0]["photographs"]["used"]
    (would,) = on("accept", "--at-least", "0.1", "--dry-run")
    (did,) = on(
        "accept", *{decision["file"] for decision in would["decisions"]}, "--at-least", "0.1"
    )
    assert on("suggest")[-1]["taught"] == len({decision["file"] for decision in did["decisions"]})
    after = on("train")[0]["photographs"]["used"]
    accepted = {Path(decision["file"]).name for decision in did["decisions"]}
    new = accepted - set([*world.tags_of][::2])  # every other photograph had tags before
    assert new
    assert after == before + len(new)
    assert call(world.cache, "status", "--catalogue", catalogue).exit_code == 0


def test_what_is_rejected_for_a_photograph_without_tags_is_learned_from(on, world, catalogue):
    (likely,) = on("accept", "--tag", "blue", "--at-least", "0.5", "--dry-run")
    files = [decision["file"] for decision in likely["decisions"]]
    (yes,) = on("accept", *files, "--tag", "blue")
    (no,) = on("reject", "--tag", "red", "--below", "1")
    tagged = {str(world.photos / name) for name in [*world.tags_of][::2]}
    accepted = {decision["file"] for decision in yes["decisions"]}
    answered = {decision["file"] for decision in no["decisions"]} | accepted
    bare = answered - tagged  # answers alone say nothing of other tags
    assert accepted & bare < bare
    (learned,) = on("train")
    assert learned["rejected"] == len(no["decisions"])
    with open_catalogue(catalogue) as opened:
        annotator, _ = opened.model.load()
    complete = annotator.model_.complete
    assert bare == {annotator.paths_[i] for i in np.flatnonzero(~complete)}
    unsaid = annotator.model_.unannotated
    assert (unsaid.n_accepted, unsaid.n_rejected) == (len(yes["decisions"]), len(no["decisions"]))
    red = annotator.vocabulary_.index("red")
    assert unsaid.offsets[red] < unsaid.offset


def test_a_photograph_that_lost_its_tags_is_no_kin_any_more(on, world, catalogue, tmp_path):
    tags_of_half = dict([*world.tags_of.items()][::2])
    bare = next(name for name, tags in tags_of_half.items() if "red" in tags)
    write_tag_file(
        tmp_path / "fewer.jsonl", {n: tags for n, tags in tags_of_half.items() if n != bare}
    )
    (scan,) = on("scan", "--tags", "fewer.jsonl")
    assert bare in scan["retagged"]
    with open_catalogue(catalogue) as opened:
        annotator, _ = opened.model.load()
        row = [Path(path).name for path in annotator.paths_].index(bare)
        files = [str(world.photos / name) for name in world.tags_of if "red" in name]

        def kin() -> set[str]:
            suggested = annotator.suggest(files, n=5, n_kin=50)
            return {
                Path(k.file).name
                for suggestion in suggested
                for s in suggestion.suggestions
                for k in s.kin
            }

        assert bare in kin()
        assert opened.model.teach(annotator) == 1
        assert annotator.tags_[row] == []
        assert bare not in kin()
        assert opened.model.teach(annotator) == 0
    *_, again = on("suggest", "--threshold", "0.1")
    assert again["taught"] == 1


def test_the_shell_completes_tags(run, tmp_path, monkeypatch):
    from tagkin.cli.options import complete_tag

    assert complete_tag("d") == []  # no catalogue is no error
    (name, *_) = make_photographs(tmp_path / "photos", n_each=1)
    write_sidecar(tmp_path / "photos" / name, ["Dog", "dune", "cat"])
    done(run("scan", "photos"))
    assert sorted(complete_tag("d")) == ["Dog", "dune"]


def test_the_demo_goes_the_whole_way(world, tmp_path, monkeypatch, capsys):
    """Accepted, written beside the photographs, and undone: every byte is there again."""
    from examples.round_trip import digests, round_trip
    from tagkin.catalogue import open_for_scan

    shutil.copytree(world.cache, tmp_path / "cache")  # a cache remembers where photographs are
    monkeypatch.setenv("TAGKIN_CACHE", str(tmp_path / "cache"))
    photos = tmp_path / "photos"
    shutil.copytree(world.photos, photos)
    write_tag_file(photos / "metadata.jsonl", dict([*world.tags_of.items()][::2]))
    before = digests(photos)
    with open_for_scan(photos, tmp_path / "demo.sqlite") as catalogue:
        catalogue.scan()
        catalogue.model.refit()
        n_suggested = catalogue.status().n_suggestions
        round_trip(catalogue, lambda *_: None)
        assert catalogue.status().n_suggestions == n_suggested  # decisions are undone, too
    output = capsys.readouterr().out
    assert f"All {len(world.tags_of) + 1} files are as they were, byte for byte" in output
    assert "Written    0" not in output
    assert digests(photos) == before


def test_the_demo_ends_without_a_terminal(tmp_path, monkeypatch, capsys):
    """It says first what it does, measures against what was painted, and does not wait."""
    from examples import demo

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "N_SCENES", 60)
    monkeypatch.setattr(demo, "N_UNTAGGED", 15)
    monkeypatch.setenv("TAGKIN_CACHE", str(tmp_path / "cache"))
    demo.main()
    output = capsys.readouterr().out
    assert output.startswith("This demo paints 60 small scenes")
    assert "Learned from 45 of 60 photographs" in output
    assert "byte for byte" in output
    assert output.splitlines()[-1].startswith("To review it: tagkin review --catalogue ")
