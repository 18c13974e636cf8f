"""A photograph that cannot be used is named with its reason, and every command goes on.

The examples of all commands run beside such photographs in test_documented_commands.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.privileges import made_folder, without_privileges

from .conftest import Result, call
from .synthetic import make_photographs, write_sidecar
from .test_review import end, opened, wait_for_job

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no named pipes in folders"
)

# why a photograph cannot be used, by its name; `closed` is so for whom it is closed to
REASONS = {
    "closed.jpg": "permission denied",
    "empty.jpg": "empty file",
    "pipe.jpg": "not a regular file",
    "text.jpg": "not an image tagkin reads (found text)",
    "truncated.jpg": "truncated or damaged JPEG file",
    "vanished.jpg": "there is no such file",
}
OF_CATALOGUE = (
    "is not in the catalogue",
    "is a folder, not a photograph",
    "could not be read by the last",
    "were not written",
)
DAMAGED = ("empty.jpg", "text.jpg", "truncated.jpg")  # a scan does not look at pixels


def make_collection(photos: Path) -> str:
    """Tagged and untagged photographs, and one of every kind of badness; a good one's name."""
    tags_of = make_photographs(photos, n_each=4)
    for name in [*tags_of][::2]:
        write_sidecar(photos / name, tags_of[name])
    good, *_, another = [*tags_of][1::2]
    for name in ("closed.jpg", "vanished.jpg"):
        (photos / name).write_bytes((photos / good).read_bytes() + name.encode())
    (photos / "closed.jpg").chmod(0)
    (photos / "truncated.jpg").write_bytes((photos / another).read_bytes()[:1200])
    (photos / "empty.jpg").touch()
    (photos / "text.jpg").write_text("nothing to see\n")
    os.mkfifo(photos / "pipe.jpg")
    for name in REASONS:
        write_sidecar(photos / name, ["red", "circle"])
    (photos / "folder.jpg").mkdir()
    return good


class Step(NamedTuple):
    """A command, the photographs that it has to name, and how it ends."""

    command: str
    names: tuple[str, ...] = ()
    exit_code: int = 0


def steps(good: str) -> Iterator[Step]:
    """Commands in an order in which each has something to do."""
    yield Step("scan photos --json", ("closed.jpg", "pipe.jpg"))
    gone = (*DAMAGED, "vanished.jpg")  # the test removes it now
    yield Step("train --json", gone)
    yield Step("suggest -n 2 --json", gone)
    yield Step("suggest -n 2 --csv", gone)
    yield Step("suggest -n 2 --only-untagged")
    yield Step("evaluate photos --json", gone)
    yield Step("audit --report audit.html")
    for name in (good, *REASONS):
        bad = (name,) if name in REASONS else ()
        yield Step(f"find --like photos/{name}", bad, bool(bad))
    yield Step("explain photos/truncated.jpg")
    yield Step("accept --at-least 0")
    named = " ".join(f"photos/{name}" for name in (good, "folder.jpg", *REASONS))
    unknown = ("closed.jpg", "pipe.jpg", "folder.jpg")  # the catalogue has no content of them
    yield Step(f"accept {named} --tag quite-new", unknown)
    yield Step(f"reject {named} --tag green", unknown)
    yield Step("write --dry-run")
    yield Step("write", ("vanished.jpg",), 1)
    yield Step(f"write {named}", (*unknown, "vanished.jpg"), 1)
    yield Step("undo")
    yield Step("status")
    yield Step("history")
    yield Step("export kept.jsonl")
    yield Step("import kept.jsonl")
    yield Step("tags list")
    yield Step("tags rename green verdant")
    yield Step("tags merge red blue --into colour")
    yield Step("tags forget circle")
    yield Step("tags restore circle")
    yield Step("tags duplicates")
    yield Step("cache")
    yield Step("cache --clear")
    yield Step("scan --json", ("closed.jpg", "pipe.jpg"))


def walk(home: Path, is_closed: bool) -> None:
    good = make_collection(home / "photos")
    for step in steps(good):
        if step.command.startswith("train "):
            (home / "photos" / "vanished.jpg").unlink()
        result = call(home / "cache", *step.command.split())
        check(step, result, is_closed)


def check(step: Step, result: Result, is_closed: bool) -> None:
    about = f"{step.command}\n{result.stderr}"
    assert "internal error" not in result.stderr, about
    names = [name for name in step.names if name != "closed.jpg" or is_closed]
    if names == list(step.names):
        assert result.exit_code == step.exit_code, about
    for name in names:
        sentences = f"{name}: {REASONS.get(name)}", *(f"{name} {why}" for why in OF_CATALOGUE)
        assert any(text in result.stderr for text in sentences), (name, about)


@pytest.fixture
def home(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(open_folder)
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(open_folder / "data"))
    return open_folder


@pytest.fixture(scope="module")
def _walked() -> None:
    """As whoever runs the tests, who can import what commands need."""
    with made_folder() as folder, pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        here.setenv("TAGKIN_CATALOGUES", str(folder / "data"))
        walk(folder, is_closed=os.geteuid() != 0)


@pytest.mark.usefixtures("_walked")
def test_every_command_goes_on(home):
    with without_privileges():
        walk(home, is_closed=True)


def test_a_review_goes_on(start, tmp_path):
    make_collection(tmp_path / "photos")
    process = start("review", "photos", "--no-browser", "--port", 0, "--json")
    try:
        browser = opened(process)
        assert wait_for_job(browser)["fit"]["state"] == "done"
        assert browser.get("/api/v1/tags").json["tags"]
        output = end(process)
    finally:
        process.kill()
        process.communicate()
    for name in (*DAMAGED, "pipe.jpg"):
        assert f"{name}: {REASONS[name]}" in output
