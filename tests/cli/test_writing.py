"""Accepted tags are written and taken back from the command line."""

import os
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from tagkin.cli import app  # noqa: F401 (imported before a child is made of this process)
from tagkin.collection import read_keywords
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.collection.xmp_samples import with_xmp
from tests.forking import in_child, needs_fork
from tests.killing import counted

from .conftest import call, lines
from .synthetic import make_photographs, write_sidecar


@pytest.fixture
def photos(world, catalogue, tmp_path) -> Path:
    """A copy of the photographs whose catalogue it is, to write into."""
    shutil.copytree(world.photos, tmp_path / "copy")
    with sqlite3.connect(catalogue) as connection:
        connection.execute("UPDATE collection SET root = ?", (str(tmp_path / "copy"),))
    connection.close()
    return tmp_path / "copy"


@pytest.fixture
def on(run, catalogue, photos):
    """Run a command on the catalogue; its JSON."""

    def ran(*args):
        result = run(*args, "--json", "--catalogue", catalogue)
        assert result.exit_code == 0, result.stderr
        (record,) = lines(result.stdout)
        return record

    return ran


def contents(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


def test_written_undone_and_in_the_history(on, run, photos, catalogue):
    before = contents(photos)
    accepted = on("accept", "--tag", "red", "--at-least", "0.5")
    files = {decision["file"] for decision in accepted["decisions"]}
    would = on("write", "--dry-run")
    assert (would["run"], contents(photos)) == (None, before)
    did = on("write")
    assert {file["photograph"] for file in did["files"]} == files
    assert [file["file"] for file in did["files"]] == [file["file"] for file in would["files"]]
    for written in did["files"]:
        assert written["file"] == f"{written['photograph']}.xmp"
        assert (written["is_new"], written["state"], written["tags"]) == (True, "written", ["red"])
        assert read_keywords(written["photograph"]) == ["red"]
    assert on("write")["run"] is None
    would = on("undo", "--dry-run")
    assert (would["run"], would["undoes"], len(would["files"])) == (None, did["run"], len(files))
    undone = on("undo")
    assert (undone["undoes"], undone["what"]) == (did["run"], "write")
    assert {file["how"] for file in undone["files"]} == {"removed"}
    assert contents(photos) == before
    result = run("history", "--json", "--catalogue", catalogue)
    assert [past["what"] for past in lines(result.stdout)][:3] == ["undo", "write", "accept"]
    undone = on("undo", "--run", accepted["run"])
    assert {decision["file"] for decision in undone["decisions"]} == files
    assert on("write")["files"] == []


def test_a_rejected_tag_leaves_the_sidecar_when_asked(on, run, photos, catalogue):
    where = ("--catalogue", catalogue)
    photo = Path(on("accept", "--tag", "red", "--at-least", "0.5")["decisions"][0]["file"])
    on("write")
    written = contents(photos)
    assert "To remove" not in run("status", *where).stdout
    on("reject", photo, "--tag", "red")
    assert on("write")["files"] == []
    status = " ".join(run("status", *where).stdout.split())
    assert "rejected tags from 1 sidecar (tagkin write --remove --dry-run)" in status
    result = run("write", "--remove", "--dry-run", *where)
    assert "Would remove 1 rejected tag from 1 sidecar." in result.stderr
    assert "removed 1 rejected tag from 1 sidecar" in run("write", "--remove", *where).stderr
    assert "To remove" not in run("status", *where).stdout
    assert read_keywords(photo) == []
    assert "removed 1 tag" in run("history", *where).stdout
    on("undo")
    assert contents(photos) == written


def test_a_rejected_tag_inside_a_photograph_needs_embed(run, tmp_path):
    make_photographs(tmp_path / "photos", n_each=1)
    photo = tmp_path / "photos" / "red-circle-0.jpg"
    write_sidecar(photo, ["red"])
    sidecar = Path(f"{photo}.xmp")
    photo.write_bytes(with_xmp(photo.read_bytes(), sidecar.read_bytes()))
    sidecar.unlink()
    assert read_keywords(photo) == ["red"]
    run("scan", "photos")
    assert "--embed" not in run("write", "--remove").stderr
    run("reject", photo, "--tag", "red")
    stderr = run("write", "--remove").stderr
    assert "Rejected tags inside photographs stay; --embed removes them, too." in stderr
    assert read_keywords(photo) == ["red"]


def test_undo_says_which_files_it_restored_and_which_it_removed(run, photos, catalogue):
    where = ("--catalogue", catalogue)
    run("accept", "--tag", "red", "--at-least", "0.5", *where)
    write_sidecar(photos / "red-circle-1.jpg", ["round"])
    before = contents(photos)
    run("write", *where)
    n_new = len(list(photos.glob("*.xmp"))) - 1
    output = run("undo", "--dry-run", *where).stderr
    assert f"restore 1 file and remove {n_new} files that it made." in output
    output = run("undo", *where).stderr
    assert f"restored 1 file byte for byte and removed {n_new} files that it had made." in output
    assert contents(photos) == before


def test_a_rejected_tag_in_a_tag_file_stays_and_is_said(run, tmp_path):
    make_photographs(tmp_path / "photos", n_each=1)
    tags = tmp_path / "photos" / "metadata.jsonl"
    tags.write_text('{"file_name": "red-circle-0.jpg", "tags": ["red"]}\n')
    before = tags.read_bytes()
    run("scan", "photos")
    assert "stay in" not in run("write", "--remove", "--dry-run").stderr
    run("reject", tmp_path / "photos" / "red-circle-0.jpg", "--tag", "red")
    for options in (["--dry-run"], []):
        result = run("write", "--remove", *options)
        assert "Rejected tags stay in metadata.jsonl, because tagkin never changes" in result.stderr
    (document,) = lines(run("write", "--remove", "--json").stdout)
    assert document["unchanged"] == ["metadata.jsonl"]
    assert tags.read_bytes() == before


def test_sentences_for_people(run, photos, catalogue):
    where = ("--catalogue", catalogue)
    assert "nothing to write" in run("write", *where).stderr
    assert "Nothing to undo" in run("undo", *where).stderr
    run("accept", "--tag", "red", "--at-least", "0.5", *where)
    result = run("write", "--dry-run", "--sidecars", "img.xmp", *where)
    assert "Would write" in result.stderr
    assert "red-circle-1.xmp" in result.stdout
    assert "new, named as you asked" in " ".join(result.stdout.split())
    result = run("write", "--sidecars", "img.xmp", *where)
    assert result.stderr.startswith("Run 5: wrote ")
    assert result.stderr.endswith("of them new. `tagkin undo` undoes it.\n")
    assert (photos / "red-circle-1.xmp").is_file()
    sidecar = photos / "red-circle-1.xmp"
    sidecar.write_bytes(sidecar.read_bytes().replace(b"x:xmptk", b"x:toolkit"))
    n_new = len(list(photos.glob("*.xmp")))
    files = f"{n_new} files that it made"
    assert f"Would undo run 5 (write): remove {files}." in run("undo", "--dry-run", *where).stderr
    result = run("undo", *where)
    files = f"{n_new - 1} files that it had made"
    text = f"Undid run 5 (write): removed {files} and undid its changes in 1 file "
    assert text in result.stderr
    assert "red-circle-1.xmp: somebody changed it since; only tagkin's own changes" in result.stderr
    assert "decision" in run("undo", *where).stderr


def test_undo_after_renames_says_what_is_left_in_one_line_each(run, photos, catalogue):
    where = ("--catalogue", catalogue)
    run("accept", "--tag", "red", "--at-least", "0.5", *where)
    run("write", "--sidecars", "img.xmp", *where)
    written = sorted(photos.glob("*.xmp"))
    for end in ("jpg", "xmp"):
        old = written[0].with_suffix(f".{end}")
        old.rename(old.with_name(f"renamed.{end}"))
    result = run("undo", *where)
    assert result.exit_code == 1
    n_undone = len(written) - 1
    assert (
        f"Undid a part of run 5 (write): removed {n_undone} file{'s' * (n_undone > 1)} that it had "
        "made; 1 file not undone." in result.stderr
    )
    (note,) = (text for text in result.stderr.splitlines() if text.startswith("Note: "))
    assert note.count(written[0].name) == 1
    assert "Scan the folder, then undo again" in result.stderr
    assert "undone in part by run 6" in " ".join(run("history", *where).stdout.split())
    run("scan", *where)
    assert "Undid run 5 (write)" in run("undo", *where).stderr
    assert not list(photos.glob("*.xmp"))
    assert "in part" not in run("history", *where).stdout


def test_a_dry_run_says_how_a_new_sidecar_is_named_and_why(run, photos, catalogue):
    where = ("--dry-run", "--json", "--catalogue", catalogue)
    run("accept", "--tag", "red", "--at-least", "0.5", "--catalogue", catalogue)
    other = next(path for path in photos.glob("*.jpg") if "red" not in path.name)
    for suffix, why in (
        (None, "default name"),
        (".jpg.xmp", "named as most non-RAW sidecars in this folder"),
    ):
        if suffix:
            other.with_suffix(suffix).write_text("")
        (result,) = lines(run("write", *where).stdout)
        assert {file["why"] for file in result["files"]} == {why}


def test_a_folder_in_place_of_photographs_means_the_photographs_in_it(on, run, photos, catalogue):
    where = ("--catalogue", catalogue)
    accepted = on("accept", photos, "--tag", "red", "--at-least", "0.5", "--dry-run")
    assert accepted == on("accept", "--tag", "red", "--at-least", "0.5", "--dry-run")
    assert accepted["decisions"]
    for command in ("accept", "reject"):  # the whole collection needs a clear word
        result = run(command, photos, *where)
        assert (result.exit_code, result.stderr.count("say wh")) == (2, 1), result.stderr
    on("accept", "--tag", "red", "--at-least", "0.5")
    written = on("write", photos, "--dry-run")
    assert written == on("write", "--dry-run")
    assert written["files"]
    (photos / "later").mkdir()
    assert on("write", photos / "later", "--dry-run")["files"] == []
    photo = written["files"][0]["photograph"]
    result = run("write", photo, photos, "--dry-run", *where)
    assert (result.exit_code, "Note: copy is a folder" in result.stderr) == (0, True)
    result = run("explain", photos, *where)
    assert result.exit_code == 1
    assert result.stderr == "Error: copy is a folder, not a photograph.\n"


def test_copies_are_said_before_they_are_written(run, photos, catalogue):
    where = ("--catalogue", catalogue)
    (photos / "copies").mkdir()
    shutil.copy(photos / "red-circle-1.jpg", photos / "copies")
    assert run("scan", *where).exit_code == 0
    asked = ("accept", photos / "red-circle-1.jpg", "--tag", "mine", *where)
    result = run(*asked, "--dry-run")
    assert "copy/red-circle-1.jpg (and 1 copy)" in result.stdout
    assert result.stderr == "1 tag on 1 photograph (2 files) would be accepted.\n"
    assert run(*asked).stderr.endswith(": accepted 1 tag on 1 photograph (2 files).\n")
    result = run("write", "--tag", "mine", "--dry-run", *where)
    would = "2 tags into 2 sidecars, all of them new, for 1 photograph (2 files)"
    assert result.stderr == f"Would write {would}.\n"
    assert f"wrote {would}." in run("write", "--tag", "mine", *where).stderr


def test_what_comes_next_is_what_is_left_to_do(run, photos, catalogue):
    where = ("--catalogue", catalogue)

    def status_advice():
        (plain,) = lines(run("status", "--json", *where).stdout)
        return plain["n_sure"], run("status", *where).stdout.rpartition("Next: ")[2].strip()

    n_sure, advice = status_advice()
    assert n_sure
    assert advice == "tagkin accept --at-least 0.9 --dry-run"
    run("accept", "--at-least", "0.9", *where)
    assert status_advice() == (0, "tagkin write --dry-run")
    run("write", *where)
    n_open = lines(run("status", "--json", *where).stdout)[0]["n_suggestions"]
    assert status_advice() == (0, "tagkin review" if n_open else "tagkin suggest")
    run("reject", "--below", 1, *where)
    assert status_advice() == (0, "tagkin suggest")


def test_one_bad_file_is_named_and_the_others_are_written(run, photos, catalogue):
    where = ("--catalogue", catalogue)
    run("accept", "--tag", "red", "--at-least", "0.5", *where)
    bad = photos / "red-circle-1.jpg.xmp"
    bad.write_text("<broken")
    result = run("write", *where)
    assert result.exit_code == 1
    assert "red-circle-1.jpg.xmp: it is not well-formed XML" in result.stderr
    assert bad.read_text() == "<broken"
    assert (photos / "red-circle-3.jpg.xmp").is_file()
    result = run("write", *where)  # and now there is nothing else
    assert "Nothing was written." in result.stderr
    assert "tagkin undo" not in result.stderr
    for sidecar in photos.glob("*.xmp"):
        sidecar.write_text("<broken")
    result = run("undo", *where)
    assert result.exit_code == 1
    assert "was not restored" in result.stderr
    assert run("write", "--sidecars", "other", *where).exit_code == 2


@needs_exiftool
def test_embedding_tags_that_sidecars_have(run, photos, catalogue):
    where = ("--catalogue", catalogue)
    hint = "tagkin scan`, then add --align"
    run("accept", "--tag", "red", "--at-least", "0.5", *where)
    assert hint not in run("write", *where).stderr
    output = run("write", "--embed", *where).stderr
    assert "nothing to write" in output
    assert hint in " ".join(output.split())
    run("scan", photos, *where)
    output = run("write", "--embed", "--align", *where).stderr
    assert hint not in output
    changed = next(photos.glob("*_original")).name.removesuffix("_original")
    (photos / f"{changed}.xmp").unlink()
    assert read_keywords(photos / changed) == ["red"]


def test_without_exiftool(run, photos, catalogue, monkeypatch):
    run("accept", "--tag", "red", "--at-least", "0.5", "--catalogue", catalogue)
    before = contents(photos)
    monkeypatch.setenv("PATH", "")
    result = run("write", "--embed", "--catalogue", catalogue)
    assert result.exit_code == 1
    assert "exiftool, which is not installed" in result.stderr
    assert contents(photos) == before


@needs_fork
@pytest.mark.parametrize("command", ["write", "undo"])
def test_a_killed_command_is_finished_by_the_same_command(
    command, run, world, photos, catalogue, tmp_path
):
    """Killed when half of the files are there."""
    where = ("--catalogue", catalogue)
    before = contents(photos)
    run("accept", "--tag", "red", "--at-least", "0.5", *where)
    if command == "undo":
        assert run("write", *where).exit_code == 0
    written = {path.name for path in photos.glob("*.xmp")}
    left = 4

    def step(name):
        nonlocal left
        left -= name == ("replace" if command == "write" else "unlink")
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def work():
        with counted(step):
            call(world.cache, command, *where)

    _, status = os.waitpid(in_child(work), 0)
    assert os.WIFSIGNALED(status)
    there = {path.name for path in photos.glob("*.xmp")}
    if command == "write":
        assert len(there) == 3
        assert run("write", *where).exit_code == 0
        assert {read_keywords(path.with_suffix(""))[0] for path in photos.glob("*.xmp")} == {"red"}
        assert run("undo", *where).exit_code == 0
    else:
        assert 0 < len(there) < len(written)
    assert run("undo", *where).exit_code == 0
    if command == "write":
        assert not list(photos.glob("*.xmp"))
    assert contents(photos) == before
