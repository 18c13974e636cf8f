"""A program that is forked behaves as one that is started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .fork_server import Start

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
# what a program sees of the world
SEEN = """
import json, os, sys
print(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), sys.stdin.read(), __name__]))
print("é aside", file=sys.stderr)
sys.exit(7)
"""
# until its input ends; in steps, since a signal that comes just before a read does not end the read
WAITS = """
import select
print("waits", flush=True)
while not select.select([0], [], [], 0.1)[0]:
    pass
"""


def test_arguments_folder_environment_and_streams(forked: Start, tmp_path: Path) -> None:
    settings = {"env": {"A": "夕", "PATH": os.environ["PATH"]}, "cwd": tmp_path, "text": True}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    outputs = []
    for process in (
        forked(["-c", SEEN, "--one", "two"], **settings, **pipes),
        subprocess.Popen([sys.executable, "-c", SEEN, "--one", "two"], **settings, **pipes),  # type: ignore[call-overload]
    ):
        out, err = process.communicate("asked")
        outputs.append([*json.loads(out), err, process.returncode])
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == ["--one", "two"]
    assert outputs[0][-1] == 7


def test_what_is_imported_is_there_and_a_module_runs(forked: Start) -> None:
    code = "import sys; print('sklearn' in sys.modules, 'tagkin.server' in sys.modules)"
    process = forked(["-c", code], stdout=subprocess.PIPE, text=True)
    assert process.communicate()[0] == "True True\n"
    process = forked(["-m", "tagkin", "--version"], stdout=subprocess.PIPE, text=True)
    assert process.communicate()[0].startswith("tagkin ")
    assert process.returncode == 0


def test_an_error_ends_it_as_any_other(forked: Start) -> None:
    process = forked(["-c", "1 / 0"], stderr=subprocess.PIPE, text=True)
    assert process.communicate()[1].endswith("ZeroDivisionError: division by zero\n")
    assert process.returncode == 1


def test_signals_reach_it(forked: Start) -> None:
    process = forked(["-c", WAITS], **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    output = process.stderr.read()  # to its end, and only then its input ends
    process.communicate()
    assert b"KeyboardInterrupt" in output
    assert process.returncode == -signal.SIGINT


def test_killed_it_is_gone(forked: Start) -> None:
    """What it holds is free: here the pipe that it writes to."""
    reader, writer = os.pipe()
    process = forked(["-c", WAITS], stdin=subprocess.PIPE, stdout=writer)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.readline() == "waits\n"
        process.kill()
        assert pipe.read() == ""
    assert process.wait() == -signal.SIGKILL
    assert process.stdin is not None
    process.stdin.close()
