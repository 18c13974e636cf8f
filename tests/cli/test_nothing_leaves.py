"""Nothing leaves the machine, and nothing is written but what was asked for."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import World
from tests.cli.reference import commands
from tests.cli.synthetic import write_tag_file
from tests.cli.watching import WATCHERS, Seen, watched
from tests.fork_server import Start

# They hold nothing. Semaphores are files there, and joblib tries whether they work.
DEVICES = re.compile("/dev/(?!shm/)|/dev/shm/sem[.]|/dev/shm/[^/]+$")
PROGRAM = """
import sys
from tagkin.cli import main
for command in {commands!r}:
    sys.argv = ["tagkin", *command]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
"""


def every_command(photos: str, tags: str, fresh: str, out: str) -> list[list[str]]:
    """Every command but review, in an order in which each has something to do."""
    one, model, kept = f"{fresh}/red-circle-0.jpg", f"{out}/model", f"{out}/decisions.jsonl"
    return [
        ["train", photos, "--tags", tags, "--model", model],
        ["suggest", fresh, "--model", model, "--output", f"{out}/suggested.csv"],
        ["evaluate", photos, "--tags", tags, "--report", f"{out}/report.html"],
        ["evaluate", fresh, "--model", model],
        ["explain", one, "--model", model],
        ["similar", one, "--model", model],
        ["audit", "--model", model],
        ["map", "--model", model, "--output", f"{out}/map.png"],
        ["info", model],
        ["scan", photos, "--tags", tags],
        ["train"],
        ["suggest", "-n", "2"],
        ["reject", f"{photos}/red-circle-0.jpg", "--tag", "red"],
        ["accept", "--all"],
        ["write"],
        ["undo"],
        ["status"],
        ["history"],
        ["explain", f"{photos}/red-circle-0.jpg"],
        ["export", "--output", kept],
        ["import", kept],
        ["tags", "list"],
        ["tags", "duplicates"],
        ["tags", "rename", "green", "verdant"],
        ["tags", "merge", "red", "blue", "--into", "colour"],
        ["tags", "forget", "circle"],
        ["tags", "restore", "circle"],
        ["cache", "info"],
        ["cache", "prune", "--max-size", "1GB"],
        ["cache", "clear"],
    ]


def test_every_command_is_watched() -> None:
    watched_ones = [" ".join(one) for one in every_command("photos", "tags", "fresh", "out")]
    left_out = [
        name
        for name in commands()
        if not any(f"{one} ".startswith(f"{name} ") for one in watched_ones)
    ]
    assert left_out == ["review"], "which tests/cli/test_review.py watches: it has a socket"


def environment(home: Path) -> dict[str, str]:
    """As of a user who has set nothing: features go to the usual cache folder."""
    unset = {"TAGKIN_CACHE", "XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY"}
    unset |= {"TAGKIN_CATALOGUES", "XDG_DATA_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    package = str(Path(__file__).parents[2] / "src")
    temporary = home.parent / "temporary"
    temporary.mkdir()
    return kept | {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": package}


def outside(seen: Seen, *allowed: Path) -> list[Path]:
    """Paths that were changed and lie in no folder where something may be written."""
    changes = [p for p in seen.changes if not DEVICES.match(str(p))]
    return sorted(p for p in changes if not any(p.is_relative_to(f) for f in allowed))


@pytest.mark.skipif(sys.platform != "linux", reason="the usual cache folder is Linux's")
def test_no_socket_is_opened_and_only_what_was_asked_for_is_written(
    world: World, tmp_path: Path
) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    out.mkdir()
    photos = tmp_path / "photos"
    photos.mkdir()
    some = dict([*world.tags_of.items()][::2])
    for name in some:
        shutil.copy2(world.photos / name, photos)
    tags = write_tag_file(tmp_path / "tags.jsonl", some)
    before = {p: p.stat().st_mtime_ns for f in (photos, world.fresh) for p in f.iterdir()}
    each = every_command(*map(str, (photos, tags, world.fresh, out)))
    code = PROGRAM.format(commands=each)
    seen = watched(code, tmp_path / "scratch", environment(home), by=WATCHERS[0])
    assert seen.ended.returncode == 0, seen.ended.stderr
    assert seen.sockets == []
    cache = home / ".cache" / "tagkin"
    kept = home / ".local" / "share" / "tagkin"
    made = {cache.parent, kept.parent, kept.parent.parent}  # which may have to be made
    assert set(outside(seen, out, cache, kept, photos)) <= made
    # sidecars were written and taken back, each by way of a file beside it
    beside = {p.name for p in seen.changes if p.parent == photos}
    assert beside
    assert all(".jpg.xmp" in name for name in beside)
    assert any(path.is_relative_to(kept / "catalogues") for path in seen.changes)
    assert any(path.is_relative_to(cache) for path in seen.changes)
    assert any(path.is_relative_to(out) for path in seen.changes)
    assert "Error" not in seen.ended.stderr
    # whoever wrote, nothing else is there at the end
    ours = (cache, kept)
    assert all(any(map(p.is_relative_to, ours)) for p in home.rglob("*") if p.is_file())
    assert sorted(p.name for p in out.iterdir()) == [
        "decisions.jsonl",
        "map.png",
        "model",
        "report.html",
        "suggested.csv",
    ]
    assert not list((tmp_path / "temporary").iterdir())
    after = {p: p.stat().st_mtime_ns for f in (photos, world.fresh) for p in f.iterdir()}
    assert after == before


@pytest.mark.parametrize("by", WATCHERS)
def test_watching_sees_sockets_and_writes(tmp_path: Path, by: str) -> None:
    home, target = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    code = f"""
import os, socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
os.mkdir({str(target)!r})
open({str(target / "file")!r}, "w").close()
os.rename({str(target / "file")!r}, {str(target / "renamed")!r})
open({str(target / "renamed")!r}).close()
"""
    seen = watched(code, tmp_path / "scratch", environment(home), by=by)
    assert seen.ended.returncode == 0, seen.ended.stderr
    assert len(seen.sockets) == 1
    assert outside(seen, home) == [target, target / "file", target / "renamed"]


def test_a_home_that_cannot_be_written_is_one_note(
    world: World, forked: Start, tmp_path: Path
) -> None:
    home = tmp_path / "file" / "home"  # no one can make a folder in a file, root neither
    home.parent.write_text("")
    command = ["suggest", str(world.fresh / "red-circle-0.jpg"), "--model", str(world.model)]
    process = forked(
        ["-m", "tagkin", *command],
        env=environment(tmp_path / "home") | {"HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert said.startswith("Note: Features cannot be kept in ")
    assert "onnxruntime" not in said


def test_telemetry_is_the_users_choice(tmp_path: Path) -> None:
    """Looked at without an import of onnxruntime, which would send some."""
    code = """
import os, sys, types
sys.modules["onnxruntime"] = types.ModuleType("onnxruntime")
from tagkin.features.onnx_sessions import import_onnxruntime
import_onnxruntime()
print(os.environ["ORT_DISABLE_TELEMETRY"])
"""
    (tmp_path / "home").mkdir()
    env = environment(tmp_path / "home")
    for given, expected in (({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0")):
        scratch = tmp_path / f"scratch-{expected}"
        seen = watched(code, scratch, env | given, by="audit")
        assert seen.ended.stdout == f"{expected}\n", seen.ended.stderr
