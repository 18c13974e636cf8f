"""Nothing leaves the machine, and nothing is written but what was asked for."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tagkin.cli.registry import commands
from tests.cli.conftest import World
from tests.cli.desk import CONNECTING, SERVING, copy_desk, examples, put_catalogue
from tests.cli.watching import WATCHERS, Seen, watched
from tests.fork_server import Start

# They hold nothing. Semaphores are files there, and joblib tries whether they work.
DEVICES = re.compile("/dev/(?!shm/)|/dev/shm/sem[.]|/dev/shm/[^/]+$")
# Each command begins on a desk as it was; afterwards it is compared with that.
PROGRAM = """
import json, os, shutil, sys
from pathlib import Path
from tagkin.cli import main

template, desk, catalogues = map(Path, sys.argv[1:4])
changed = {{}}
for command in {commands!r}:
    shutil.rmtree(desk, ignore_errors=True)
    shutil.rmtree(catalogues, ignore_errors=True)
    shutil.copytree(template / "desk", desk)
    shutil.copytree(template / "data", catalogues)
    os.chdir(desk)
    sys.argv = ["tagkin", *command]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
    now = {{str(p.relative_to(desk)): p for p in desk.rglob("*") if p.is_file()}}
    changed[" ".join(command)] = [
        name
        for name, path in now.items()
        if not (template / "desk" / name).exists()
        or path.read_bytes() != (template / "desk" / name).read_bytes()
    ]
    before = [p.relative_to(template / "desk") for p in (template / "desk").rglob("*")]
    assert all((desk / p).exists() for p in before), command
print("CHANGED", json.dumps(changed))
"""


def first_examples() -> list[list[str]]:
    """Return the first example of every command that ends by itself and connects to nobody."""
    entries = [entry for name, entry in commands().items() if name not in SERVING | CONNECTING]
    return [list(examples(entry)[0]) for entry in entries]


def environment(home: Path) -> dict[str, str]:
    """As of a user who has set nothing: features go to the usual cache folder."""
    unset = {"TAGKIN_CACHE", "XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY"}
    unset |= {"TAGKIN_CATALOGUES", "XDG_DATA_HOME"}
    variables = {name: value for name, value in os.environ.items() if name not in unset}
    package = str(Path(__file__).parents[2] / "src")
    temporary = home.parent / "temporary"
    temporary.mkdir()
    return variables | {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": package}


def outside(seen: Seen, *allowed: Path) -> list[Path]:
    """Paths that were changed and lie in no folder where something may be written."""
    changes = [p for p in seen.changes if not DEVICES.match(str(p))]
    return sorted(p for p in changes if not any(p.is_relative_to(f) for f in allowed))


@pytest.mark.skipif(
    sys.platform != "linux", reason="the test looks into the default cache folder of Linux"
)
def test_no_socket_is_opened_and_only_what_was_asked_for_is_written(
    world: World, prepared: Path, tmp_path: Path
) -> None:
    """By the first example of every command; tests/cli/test_review.py watches review."""
    home, desk, template = tmp_path / "home", tmp_path / "desk", tmp_path / "template"
    catalogues = home / ".local" / "share" / "tagkin"
    for folder in (home, desk, template / "desk", template / "data"):
        folder.mkdir(parents=True)
    copy_desk(prepared, template / "desk", links=False)
    shutil.copy(prepared / "decisions.jsonl", template / "desk")
    put_catalogue(prepared, template / "data", (desk / "pictures"), catalogues)
    shutil.rmtree(template / "desk" / "cache", ignore_errors=True)
    each = first_examples()
    code = PROGRAM.format(commands=each)
    folders = [str(folder) for folder in (template, desk, catalogues)]
    code = f"import sys\nsys.argv[1:] = {folders!r}\n{code}"
    seen = watched(code, tmp_path / "scratch", environment(home), by=WATCHERS[0])
    assert seen.ended.returncode == 0, seen.ended.stderr
    assert seen.sockets == []
    cache = home / ".cache" / "tagkin"
    made = {cache.parent, catalogues.parent, catalogues.parent.parent}  # which may have to be made
    there = {Path(os.path.normpath(desk / path)) for path in seen.changes}  # where commands run
    seen = seen._replace(changes=there)
    assert set(outside(seen, desk, cache, catalogues)) <= made
    assert any(path.is_relative_to(catalogues) for path in seen.changes)
    assert any(path.is_relative_to(cache) for path in seen.changes)
    assert "Error" not in seen.ended.stderr
    # sidecars, and files that the command names
    changed = json.loads(seen.ended.stdout.rpartition("CHANGED ")[2])
    sidecars = changed.pop("write")
    assert sidecars
    assert all(re.fullmatch(r"pictures/.+[.]jpg[.]xmp", name) for name in sidecars)
    for command, files in changed.items():
        for file in files:
            assert Path(file).parts[0] in command.split(), command
    assert {file for files in changed.values() for file in files} >= {"quality.html"}
    # whoever wrote, nothing else is there at the end
    ours = (cache, catalogues)
    assert all(any(map(p.is_relative_to, ours)) for p in home.rglob("*") if p.is_file())
    assert not list((tmp_path / "temporary").iterdir())


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
    command = [
        "find",
        "--like",
        str(world.fresh / "red-circle-0.jpg"),
        "--catalogue",
        world.catalogue,
    ]
    process = forked(
        ["-m", "tagkin", *map(str, command)],
        env=environment(tmp_path / "home") | {"HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert stderr.startswith("Note: Features cannot be kept in ")
    assert "onnxruntime" not in stderr


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
