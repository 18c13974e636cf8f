"""tagkin without a command opens the page; a second start opens that of the first."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server.browser import Browser

PATIENCE = 300.0  # seconds
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no SIGINT for another process"
)

# a browser that only notes the address
BROWSER = """
import pathlib, re, sys, urllib.parse, urllib.request
file = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(sys.argv[1]).path))
with open(pathlib.Path(sys.argv[0]).with_suffix(".txt"), "a") as addresses:
    addresses.write(re.search('url=([^"]+)"', file.read_text())[1] + "\\n")
"""


@pytest.fixture
def opened(environment: dict[str, str], tmp_path: Path) -> Path:
    """The addresses that the browser was started with."""
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    environment["BROWSER"] = f"{sys.executable} {script} %s"
    environment["TAGKIN_CATALOGUES"] = str(tmp_path / "data")
    return script.with_suffix(".txt")


def nth(opened: Path, n: int) -> str:
    """The n-th address, when the browser was started so often."""
    until = time.monotonic() + PATIENCE
    while not opened.exists() or len(opened.read_text().splitlines()) < n:
        assert time.monotonic() < until
        time.sleep(0.05)
    return opened.read_text().splitlines()[n - 1]


def browser_at(address: str) -> Browser:
    parts = urlsplit(address)
    browser = Browser(int(parts.port or 0))
    browser.open(parts.query.removeprefix("key="))
    return browser


def end(process: subprocess.Popen, signum: signal.Signals = signal.SIGINT) -> None:
    process.send_signal(signum)
    process.communicate(timeout=PATIENCE)


def test_a_second_start_opens_the_page_of_the_first(start, opened):
    first = start()
    try:
        person = browser_at(nth(opened, 1))
        assert "Which photographs?" in person.get("/start").text
        second = start()
        _, text = second.communicate(timeout=PATIENCE)
        assert second.returncode == 0
        assert "tagkin runs already" in text
        assert browser_at(nth(opened, 2)).folder == person.folder
        assert person.post("/api/v1/desk/quit").status == 200
        _, text = first.communicate(timeout=PATIENCE)
        assert first.returncode == 0, text
        third = start()  # there is none any more
        assert browser_at(nth(opened, 3)).folder != person.folder
        end(third)
        assert third.returncode == 0
    finally:
        first.kill()
        first.communicate()


def test_a_killed_server_is_not_taken_for_one(start, opened):
    first = start()
    person = browser_at(nth(opened, 1))
    end(first, signal.SIGKILL)
    second = start()
    try:
        assert browser_at(nth(opened, 2)).folder != person.folder
    finally:
        end(second)


def test_a_review_of_the_same_folder_opens_its_page(world, start, opened, tmp_path):
    folder = Path(shutil.copytree(world.fresh, tmp_path / "fresh"))
    other = Path(shutil.copytree(world.fresh, tmp_path / "other"))
    first = start("review", folder)
    try:
        person = browser_at(nth(opened, 1))
        assert person.folder.endswith("/1")
        second = start("review", folder, "--json", "--no-browser")
        stdout, _ = second.communicate(timeout=PATIENCE)
        assert json.loads(stdout)["folder"] == "fresh"
        assert browser_at(json.loads(stdout)["address"]).folder == person.folder
        third = start("review", other, "--json", "--no-browser", "--port", 0)
        try:  # another collection has a server of its own
            assert third.stdout is not None
            assert json.loads(third.stdout.readline())["folder"] == "other"
        finally:
            end(third)
    finally:
        end(first)
    assert first.returncode == 0


@pytest.mark.parametrize("has_photographs", [True, False])
def test_a_folder_that_is_dropped_on_the_program_ends_in_a_page(
    world, environment, opened, tmp_path, has_photographs
):
    """Nobody sees a terminal there, so the page says why a folder cannot be opened."""
    folder = tmp_path / "dropped"
    folder.mkdir()
    if has_photographs:
        shutil.copytree(world.fresh, folder / "2024")
    command = [sys.executable, "-m", "tagkin.cli.dropped", str(folder)]
    process = subprocess.Popen(command, env=os.environ | environment, stderr=subprocess.PIPE)
    try:
        person = browser_at(nth(opened, 1))
        person.folder = person.folder.removesuffix("/1")
        until = time.monotonic() + PATIENCE
        while (state := person.get("/api/v1/desk").json)["state"] == "opening":
            assert time.monotonic() < until
            time.sleep(0.05)
        if has_photographs:
            assert (state["state"], state["open"]) == ("idle", str(folder))
        else:
            assert "No photograph in" in person.get("/start").text
        assert person.post("/api/v1/desk/quit").status == 200
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("has_photographs", [True, False])
def test_the_current_folder_is_reviewed(world, start, opened, tmp_path, has_photographs):
    here = tmp_path / "here"
    here.mkdir()
    if has_photographs:
        shutil.copytree(world.fresh, here / "2024")
    process = start("review", "--json", "--no-browser", "--port", 0, cwd=here)
    try:
        assert process.stdout is not None
        answer = json.loads(process.stdout.readline())
        assert answer["folder"] == (str(here) if has_photographs else None)
        page = browser_at(answer["address"])
        assert page.get("/tags" if has_photographs else "/start").status == 200
    finally:
        end(process)


def test_a_whole_home_is_not_taken_for_a_collection(world, start, environment, opened, tmp_path):
    environment["HOME"] = str(tmp_path)
    shutil.copytree(world.fresh, tmp_path / "Pictures")
    process = start("review", "--json", "--no-browser", "--port", 0, cwd=tmp_path)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["folder"] is None
    finally:
        end(process)


def test_help_is_still_help(run):
    result = run("--help")
    assert result.exit_code == 0
    assert "Usage: tagkin" in result.stdout
    assert run("nothing").exit_code == 2


# --- for other machines ---------------------------------------------------------------------


def test_other_machines_log_in(world, start, opened, tmp_path):
    folder = Path(shutil.copytree(world.fresh, tmp_path / "fresh"))
    (tmp_path / "password.txt").write_text("correct horse battery\n")
    shared = ("--host", "0.0.0.0", "--password-file", "password.txt", "--name", "nas.home")
    process = start("review", folder, *shared, "--port", 0, "--json")
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        port = urlsplit(address).port
        assert address == f"http://nas.home:{port}/"
        person = Browser(int(port or 0), "127.0.0.2")
        assert person.get("/").headers["location"] == "/login"
        form = {"Content-Type": "application/x-www-form-urlencoded", "Host": "nas.home"}
        body = b"password=correct+horse+battery"
        person.enter(person.ask("POST", "/login", body, form))
        assert person.get("/tags").status == 200
        process.send_signal(signal.SIGTERM)  # as a container ends
        _, text = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert "not encrypted" in text
        assert "correct horse" not in text
    finally:
        process.kill()
        process.communicate()
    assert not opened.exists()  # no browser here


def test_other_machines_need_a_password(run, tmp_path, world):
    result = run("review", world.fresh, "--host", "0.0.0.0")
    assert result.exit_code == 1
    assert "--password-file" in result.stderr  # nobody can be asked here
    (tmp_path / "short.txt").write_text("short\n")
    result = run("review", world.fresh, "--host", "0.0.0.0", "--password-file", "short.txt")
    assert (result.exit_code, "Choose one of 12" in result.stderr) == (1, True)
    result = run("review", world.fresh, "--host", "0.0.0.0", "--password-file", "missing.txt")
    assert (result.exit_code, "missing.txt cannot be read" in result.stderr) == (1, True)
    assert run("review", world.fresh, "--password-file", "short.txt").exit_code == 2
    assert run("review", world.fresh, "--name", "nas.home").exit_code == 2
