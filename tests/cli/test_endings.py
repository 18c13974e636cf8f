"""How commands end: exit codes, what is said, and what is left behind."""

import json
import os
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import tagkin
from tagkin.cli.output import relative
from tests.fork_server import Start
from tests.privileges import without_privileges

from .conftest import call
from .synthetic import make_photographs, write_sidecar, write_tag_file

needs_full = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="this system has no /dev/full"
)
not_windows = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no Unix signals and file names"
)


def test_help_lists_commands_and_version_is_told(run):
    assert re.search("suggest +Suggest tags", run("--help").stdout)
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"tagkin {tagkin.__version__}\n")


def test_backbones_are_completed(start, environment):
    environment["_TAGKIN_COMPLETE"] = "complete_bash"
    environment["COMP_WORDS"] = "tagkin train --backbone efficientnet-lite0-"
    environment["COMP_CWORD"] = "3"
    out, _ = start().communicate()
    assert out.split() == ["efficientnet-lite0-whole"]


# --- what cannot be done -----------------------------------------------------------------


def fails(result, *words: str) -> None:
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(("Error: ", "Note: "))
    assert re.search("^Error: ", result.stderr, re.MULTILINE)
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def test_nothing_to_learn_from(run, world, tmp_path):
    (tmp_path / "empty").mkdir()
    fails(run("train", "empty"), "No photograph in ", "empty")
    fails(run("train", "nowhere"), "nowhere is not a folder")
    fails(run("train", world.photos), "None of the 42", "has a tag")
    fails(run("scan", world.photos, "--tags", "none.csv"), "none.csv cannot be read: No such file")
    result = run("scan", world.photos, "--tags", world.tags, "--column", "odd")
    fails(result, "no column odd", "found file_name, tags", "with --column NAME")
    result = run("train", "--min-count", 900, "--catalogue", world.catalogue)
    fails(result, "lower --min-count.")


@pytest.mark.parametrize("name", ["min_count.csv", "overwrite=True.csv", 'tags="embedded".csv'])
def test_names_of_files_are_told_as_they_are(run, world, name):
    """Even if they look like parameters, which are options at the command line."""
    fails(
        run("scan", world.photos, "--tags", name),
        f"{name} cannot be read: No such file or directory.",
    )


def test_all_photographs_corrupt(run, tmp_path):
    for k in range(8):
        (tmp_path / f"{k}.jpg").write_bytes(b"\xff\xd8 no picture %d" % k)
    write_tag_file(tmp_path / "metadata.jsonl", {f"{k}.jpg": ["red"] for k in range(8)})
    for command in ("train", "suggest", "evaluate"):
        result = run(command, ".")
        fails(result, "None of the 8 photographs could be read", "0.jpg: ")


def test_too_few_photographs(run, tmp_path):
    tags = make_photographs(tmp_path / "photos", n_each=1)
    few = dict(list(tags.items())[:3])
    write_tag_file(tmp_path / "photos" / "metadata.jsonl", few)
    fails(run("train", "photos"))


def test_unwritable_outputs_are_found_before_the_work(run, world, tmp_path):
    (tmp_path / "file").write_text("mine")
    evaluate = ("evaluate", "--catalogue", world.catalogue, "--report")
    fails(run(*evaluate, "file/quality.html"), "There is no folder file")
    (tmp_path / "folder.html").mkdir()
    fails(run(*evaluate, "folder.html"), "is not a regular file")
    fails(run("scan", world.photos, "--catalogue", "file/own.sqlite"), "There is no folder")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("mode", [0o555, 0o444, 0])
def test_a_folder_that_may_not_be_written_to(mode, run, world, open_folder, monkeypatch):
    shutil.copytree(world.photos, open_folder / "photos")
    (open_folder / "closed").mkdir()
    monkeypatch.chdir(open_folder)
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(open_folder / "data"))
    (open_folder / "closed").chmod(mode)
    with without_privileges():
        assert run("scan", "photos").exit_code == 0
        result = run("scan", "photos", "--catalogue", "closed/own.sqlite")
        fails(result, "closed/own.sqlite")
        fails(run("export", "closed/own.jsonl"), "permission denied in closed")


@pytest.mark.parametrize("mode", [0o555, 0])
@pytest.mark.parametrize("place", ["closed", "closed/catalogues"])
def test_no_page_is_served_without_a_place_for_catalogues(
    mode, place, run, world, open_folder, monkeypatch
):
    shutil.copytree(world.photos, open_folder / "photos")
    (open_folder / "closed").mkdir()
    (open_folder / "password").write_text("correct horse battery")
    monkeypatch.chdir(open_folder)
    monkeypatch.setenv("XDG_PICTURES_DIR", str(open_folder / "photos"))
    shared = ("--host", "127.0.0.1", "--password-file", "password")
    with socket.create_server(("127.0.0.1", 0)) as taken:  # where nothing can be served
        port = taken.getsockname()[1]
        words = ("review", "--no-browser", "--port", port)
        fails(run(*words, "photos"), "port")  # which imports what only root may read
        monkeypatch.setenv("TAGKIN_CATALOGUES", str(open_folder / place))
        (open_folder / "closed").chmod(mode)
        for more in ((), ("photos",), shared):
            with without_privileges():
                result = run(*words, *more)
            fails(result, "closed cannot be written by user", "TAGKIN_CATALOGUES")


def test_bad_photographs_are_named_and_the_run_goes_on(run, world, open_folder, monkeypatch):
    """In keyword mode, where every photograph is opened twice: for its tags and for its pixels."""
    photos = open_folder / "photos"
    photos.mkdir()
    for file, tags in [*world.tags_of.items()][::3]:  # enough to learn from, and to look at anew
        shutil.copy(world.photos / file, photos)
        write_sidecar(photos / file, tags)
    shutil.copy(photos / "red-circle-0.jpg", photos / "closed.jpg")
    (photos / "closed.jpg").chmod(0)
    (photos / "red-circle-0.jpg.xmp").chmod(0)
    os.mkfifo(photos / "pipe.jpg")
    (photos / "big.tif").write_bytes(b"II+\0\x08\0\0\0" + b"\xff" * 7 + b"\x7f")
    (photos / "shut").mkdir()
    shutil.copy(photos / "red-circle-0.jpg", photos / "shut")
    (photos / "shut").chmod(0o444)
    monkeypatch.chdir(open_folder)
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(open_folder / "data"))
    for command in ("scan", "train", "suggest"):
        with without_privileges():
            result = call(Path("cache"), command, "photos", "--json")
        assert result.exit_code == 0, result.stderr
        summary = json.loads(result.stdout.splitlines()[-1])
        places = (summary, summary["photographs"]) if command == "train" else (summary,)
        unreadable = places[-1]["unreadable"]
        reasons = {problem["file"]: problem["reason"] for problem in unreadable}
        if command == "scan":
            for name in ("closed.jpg", "shut/red-circle-0.jpg", "red-circle-0.jpg.xmp"):
                assert reasons[f"photos/{name}"] == "permission denied"
            assert "not a regular file" in reasons["photos/pipe.jpg"]
        assert ("photos/big.tif" in reasons) == (command == "suggest")
    with without_privileges():
        result = call(Path("cache"), "find", "--like", "photos/closed.jpg")
    fails(result, "photos/closed.jpg: permission denied")


def test_models_that_cannot_be_used(run, world, catalogue):
    photo = world.fresh / "red-circle-0.jpg"
    similar = ("find", "--like", photo, "--catalogue", catalogue)
    folder = catalogue.with_suffix(".model")
    path = folder / "model.safetensors"
    data = path.read_bytes()
    for old, new, reason in (
        (b'"format_version":"7"', b'"format_version":"9"', "model format '9'"),
        (b"efficientnet", b"efficientnot", "checksum differs"),
    ):
        assert old in data
        path.write_bytes(data.replace(old, new))
        fails(run(*similar), reason)
        fails(run(*similar), "`tagkin train` learns a new one.")
    fails(run("suggest", "--dry-run", "--catalogue", catalogue), "learns a new one.")
    result = run("suggest", "--catalogue", catalogue)
    assert result.exit_code == 0
    assert "learns a new one. That happens now." in result.stderr
    assert "Learned" in result.stderr
    (folder / "model.json").touch()  # as earlier versions had it
    fails(run("train", "--catalogue", catalogue), "model.json). Nothing was changed")
    (folder / "model.json").unlink()
    other = tagkin.load(folder)
    other.fingerprint_ = "0" * 64
    tagkin.save(other, folder, overwrite=True)
    for command in (similar, ("suggest", "--catalogue", catalogue)):
        fails(run(*command), "learned with another version of 'efficientnet-lite0-whole'")
    tagkin.save(other.space_, folder, overwrite=True)
    fails(run(*similar), "is not a model of photographs: train again")


def test_an_internal_error_says_what_to_report(run, world, monkeypatch):
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("odd [red]state")

    monkeypatch.setattr("tagkin.catalogue.open_catalogue", broken)
    command = ("status", world.photos)
    result = run(*command)
    fails(
        result,
        "Error: internal error (RuntimeError: odd [red]state).",
        f"tagkin {tagkin.__version__}, Python {platform.python_version()}",
        "TAGKIN_DEBUG=1",
    )
    monkeypatch.setenv("TAGKIN_DEBUG", "1")
    with pytest.raises(RuntimeError, match="odd"):
        run(*command)


# --- processes of their own --------------------------------------------------------------


def test_a_pipe_that_is_closed_early_is_no_error(start, catalogue):
    process = start("suggest", "--threshold", 0, "--json", "--catalogue", catalogue)
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 0


@not_windows
@pytest.mark.parametrize(("command", "stream"), [("status", "stdout"), ("suggest", "stderr")])
def test_a_pipe_that_nobody_reads_is_no_error(start, catalogue, command, stream):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        process = start(command, "--catalogue", catalogue, **{stream: closed})
        out, err = process.communicate()
    assert process.returncode == 0
    assert bool(out) == (stream == "stderr")
    assert not err


@needs_full
def test_a_full_disk_is_told(start, catalogue):
    with open("/dev/full", "w") as full:
        process = start("status", "--json", "--catalogue", catalogue, stdout=full)
        _, stderr = process.communicate()
    assert process.returncode == 1
    assert stderr == "Error: No space left on device.\n"


@not_windows
def test_interrupted_it_ends_with_130_and_leaves_no_model(start_program, tmp_path):
    process = start_training(start_program, tmp_path)
    process.send_signal(signal.SIGINT)
    while not select.select([process.stdout], [], [], 60)[0]:
        process.send_signal(signal.SIGINT)  # one that comes just before a wait does not end it
    assert process.stdout.readline() == "interrupted\n"
    _, stderr = process.communicate()
    assert process.returncode == 130, stderr
    assert stderr.startswith("Interrupted.")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "fresh-cache", "photos"]
    assert not list(tmp_path.rglob("*.model"))


@not_windows
def test_an_interrupted_write_says_what_is_true_of_it(start_program, run, tmp_path):
    make_photographs(tmp_path / "photos", n_each=1)
    photos = sorted((tmp_path / "photos").glob("*.jpg"))
    assert run("scan", "photos").exit_code == 0
    assert run("accept", *photos, "--tag", "beach").exit_code == 0
    process = start_program("-c", INTERRUPTED_WRITE, "write", "photos")
    _, stderr = process.communicate()
    assert process.returncode == 130, stderr
    sentence = "Interrupted. What was done so far is kept: the same command continues from there."
    assert " ".join(stderr.split()) == sentence
    assert len([*(tmp_path / "photos").glob("*.xmp")]) == 1
    assert run("write", "photos").exit_code == 0
    assert len([*(tmp_path / "photos").glob("*.xmp")]) == len(photos)


# The command, interrupted before its second file.
INTERRUPTED_WRITE = """
import itertools, signal
from tagkin.catalogue.sources import folder_writer
from tagkin.cli import main

add_tags, calls = folder_writer.add_tags, itertools.count(1)

def interrupted(*args, **kwargs):
    if next(calls) == 2:
        signal.raise_signal(signal.SIGINT)
    return add_tags(*args, **kwargs)

folder_writer.add_tags = interrupted
main()
"""


@not_windows
def test_killed_it_leaves_no_half_written_model_and_goes_on_later(start_program, run, tmp_path):
    process = start_training(start_program, tmp_path)
    process.kill()
    process.stdout.read()  # till nobody is there to write
    process.communicate()
    assert not list(tmp_path.rglob("*.model"))
    result = call(Path("fresh-cache"), "train", "photos")
    assert result.exit_code == 0, result.stderr


# The command, held at its second batch of photographs until its input ends; in steps, since a
# signal that comes just before a read does not end the read.
HELD = """
import itertools, os, select, signal
os.environ["TAGKIN_CACHE"] = "fresh-cache"
from tagkin.cli import main
from tagkin.features.efficientnet import EfficientNetLite0

compute, calls = EfficientNetLite0.__call__, itertools.count(1)

def held(self, batch):
    number = next(calls)
    if number == 2:  # others, in other threads, are silent
        os.write(1, b"held\\n")
    if number > 1:
        while not select.select([0], [], [], 0.1)[0]:
            pass
    return compute(self, batch)

def interrupted(*signalled):
    os.write(1, b"interrupted\\n")  # a print may not come within another
    signal.default_int_handler(*signalled)

EfficientNetLite0.__call__ = held
signal.signal(signal.SIGINT, interrupted)
main()
"""


def start_training(start_program: Start, tmp_path: Path) -> subprocess.Popen:
    """Training in a process of its own, in the middle of its photographs."""
    tags = make_photographs(tmp_path / "photos", n_each=3, seed=3)
    write_tag_file(tmp_path / "photos" / "metadata.jsonl", tags)
    process = start_program("-c", HELD, "train", "photos", stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@not_windows
def test_names_that_are_not_utf8(start, run, world, tmp_path):
    photos = shutil.copytree(world.photos, tmp_path / "photos")
    write_tag_file(photos / "metadata.jsonl", world.tags_of)
    name = b"caf\xe9.jpg"
    try:
        shutil.copy(world.fresh / "red-circle-0.jpg", os.fsencode(photos) + b"/" + name)
    except OSError:
        pytest.skip("file names must be UTF-8 on this file system")
    assert run("train", "photos").exit_code == 0
    command = ("suggest", "--only-untagged", "-n", 1)
    assert "caf�.jpg" in run(*command).stdout
    photo = json.loads(run(*command, "--json").stdout.splitlines()[0])
    assert os.path.basename(os.fsencode(photo["file"])) == name
    out, stderr = start(*command, "--csv", text=False).communicate()
    assert name in out, stderr


@not_windows
def test_photographs_to_learn_from_may_have_such_names(run, tmp_path):
    tags = make_photographs(tmp_path / "photos", n_each=2)
    for name, row in tags.items():
        write_sidecar(tmp_path / "photos" / name, row)
    name = os.fsdecode(b"caf\xe9.jpg")
    for suffix in ("", ".xmp"):
        os.rename(f"photos/red-circle-0.jpg{suffix}", f"photos/{name}{suffix}")
    result = run("train", "photos")
    assert result.exit_code == 0, result.stderr
    result = run("find", "--like", "photos/red-circle-1.jpg", "--json")
    assert f"photos/{name}" in {
        neighbor["file"] for neighbor in json.loads(result.stdout)["similar"]
    }


def test_names_cannot_talk_to_the_terminal(run, world, tmp_path):
    photos = shutil.copytree(world.photos, tmp_path / "photos")
    write_tag_file(photos / "metadata.jsonl", world.tags_of)
    shutil.copy(world.fresh / "red-circle-0.jpg", photos / "a\x1b[31m[bold].jpg")
    result = run("suggest", "photos", "--only-untagged", "-n", 1)
    assert "a�[31m[bold].jpg" in result.stdout
    assert "\x1b" not in result.stdout


def test_paths_below_the_current_folder_are_shown_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert relative(tmp_path / "a" / "b.jpg") == os.path.join("a", "b.jpg")
    assert relative(tmp_path.parent / "b.jpg") == str(tmp_path.parent / "b.jpg")
    assert relative(f"{tmp_path}-more/b.jpg") == f"{tmp_path}-more/b.jpg"
    assert relative("../b.jpg") == "../b.jpg"
