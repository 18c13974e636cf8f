"""One server for a person: the second finds the first, and a killed one is recognised."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tagkin.server.only_server import FILE, OnlyServer

SERVER = """
import sys, time
from pathlib import Path
from tagkin.server.only_server import OnlyServer
only = OnlyServer(Path(sys.argv[1]))
only.announce("http://127.0.0.1:1/?key=k", Path("/photos"))
print("ready", flush=True)
time.sleep(600)
"""


def test_the_second_finds_the_first(tmp_path: Path) -> None:
    first = OnlyServer(tmp_path / "data")
    first.announce("http://127.0.0.1:1/?key=k", None)
    second = OnlyServer(tmp_path / "data")
    assert (second.address, second.root) == ("http://127.0.0.1:1/?key=k", None)
    second.announce("http://127.0.0.1:2/?key=k", None)  # changes nothing
    first.announce("http://127.0.0.1:1/?key=k", Path("/photos"))
    assert OnlyServer(tmp_path / "data").root == Path("/photos")
    first.close()
    assert OnlyServer(tmp_path / "data").address is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_the_address_is_for_its_user_alone(tmp_path: Path) -> None:
    only = OnlyServer(tmp_path / "data")
    only.announce("http://127.0.0.1:1/?key=k", None)
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / FILE).stat().st_mode & 0o777 == 0o600
    only.close()
    assert (tmp_path / "data" / FILE).read_bytes() == b""  # no key stays behind


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_the_file_of_a_killed_server_is_recognised(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert OnlyServer(tmp_path).address == "http://127.0.0.1:1/?key=k"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    assert json.loads((tmp_path / FILE).read_text())[1] == "/photos"  # it is still there
    only = OnlyServer(tmp_path)
    assert only.address is None
    only.close()


def test_without_a_place_to_write_every_server_is_the_only_one(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    only = OnlyServer(tmp_path / "data")
    only.announce("http://127.0.0.1:1/?key=k", None)
    assert only.address is None
    only.close()
