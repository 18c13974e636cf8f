"""tagkin review: started, killed, started again, and ended, with a person's decisions kept."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tagkin.annotator import Annotator
from tagkin.catalogue import SuggestOptions, open_catalogue, open_for_scan
from tagkin.catalogue.columns import pack_evidence
from tagkin.cli.options import read_words
from tests.catalogue.locking import nobody_writes
from tests.catalogue.photographs import check_invariants
from tests.catalogue.suggested import decisions
from tests.server.browser import Browser

PATIENCE = 300.0  # seconds


def opened(process: subprocess.Popen) -> Browser:
    """A browser at the address that the command has printed."""
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    assert line, process.stderr.read()
    address = urlsplit(json.loads(line)["address"])
    browser = Browser(int(address.port or 0))
    browser.open(address.query.removeprefix("key="))
    return browser


def end(process: subprocess.Popen, signum: signal.Signals = signal.SIGINT) -> str:
    """As Ctrl-C does."""
    process.send_signal(signum)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stderr
    return stderr


def wait_for_job(browser: Browser) -> dict:
    """Wait for work in the background to end; the state then."""
    until = time.monotonic() + 1200  # it is the least urgent work of a busy machine
    while (state := browser.get("/api/v1/state").json)["fit"]["state"] == "running":
        assert time.monotonic() < until, state
        time.sleep(0.2)
    return state


def stored_verdicts(catalogue: Path) -> dict[tuple[str, str], int]:
    with open_catalogue(catalogue) as opened:
        check_invariants(opened)
        return decisions(opened)


# a review that says on standard error whom it speaks to, but for the pair of sockets by which a
# loop wakes itself
WATCHED = """
import socket, sys
def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        if event != "socket.connect" or args[0].family != socket.AF_UNIX:
            print(event, args[1:], file=sys.stderr)
    elif event == "socket.bind":
        print(event, args[1][0], file=sys.stderr)
sys.addaudithook(watch)
from tagkin.cli import app
app(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_killed_and_started_again_nothing_decided_is_lost(catalogue, start, start_program, run):
    command = ("review", "--catalogue", catalogue, "--no-browser", "--port", 0, "--json")
    first = start(*command)
    try:
        browser = opened(first)
        tag = browser.get("/api/v1/tags").json["tags"][0]
        shown = browser.get(f"/api/v1/tags/{tag['id']}/suggestions?n=5").json["suggestions"]
        numbers = [suggestion["content"] for suggestion in shown]
        page = {"accept": numbers[1:], "reject": numbers[:1]}
        done = browser.decide_page(tag["id"], page).json
        assert done["accepted"] + done["rejected"] == len(numbers) > 2
        result = run("accept", "--at-least", 0, "--catalogue", catalogue)
        assert result.exit_code == 1
        assert "`tagkin review` (process " in result.stderr
        assert run("status", "--catalogue", catalogue).exit_code == 0  # who reads need not wait
    finally:
        first.kill()
        first.communicate()
    assert sorted(stored_verdicts(catalogue).values()) == [-1] + [1] * (len(numbers) - 1)

    second = start_program("-c", WATCHED, *command)
    try:
        browser = opened(second)
        assert browser.get("/api/v1/state").json["accepted"] == len(numbers) - 1
        assert browser.post("/api/v1/undo").json["decisions"] == len(numbers)
        assert set(end(second).splitlines()) == {"socket.bind 127.0.0.1"}  # nobody else
    finally:
        second.kill()
        second.communicate()
    assert stored_verdicts(catalogue) == {}
    assert run("accept", "--at-least", 0, "--dry-run", "--catalogue", catalogue).exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_a_fit_in_the_background(catalogue, start):
    before = catalogue.with_suffix(".model").stat().st_mtime_ns
    process = start("review", "--catalogue", catalogue, "--no-browser", "--port", 0, "--json")
    try:
        browser = opened(process)
        wait_for_job(browser)  # that of the start
        with nobody_writes(catalogue):
            assert browser.post("/api/v1/fit").json["started"]
            assert not browser.post("/api/v1/fit").json["started"]  # one at a time
            version = browser.get("/api/v1/state").json["version"]
        number = browser.next_event()
        assert number is not None
        deadline = time.monotonic() + 1200  # it is the least urgent work of a busy machine
        is_running, n_decided = True, 0
        while is_running:
            # a person goes on deciding meanwhile, not so often that the last runs are these alone
            for verdict in ("reject", "accept") if n_decided < 200 else ():
                n_decided += 1
                pair = [number, "quite new"]
                decided = browser.post("/api/v1/decisions", {verdict: [pair]})
                assert decided.status == 200, decided.text
                version += decided.json["run"] is not None
            time.sleep(0.3)
            fit = browser.get("/api/v1/state").json["fit"]
            is_running = fit["state"] == "running"
            assert time.monotonic() < deadline, fit
        assert fit["state"] == "done", fit
        while browser.get("/api/v1/state").json["version"] <= version:  # till the pages are told
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with open_catalogue(catalogue) as stored:
            assert {"train", "suggest", "review"} <= {run.what for run in stored.runs.history(500)}
        assert len(browser.get("/api/v1/map").json["dots"]) > 10
        near = browser.get(f"/search?similar={number}&n=3")
        assert len(near.elements("//button[@class='tile']")) == 3
        assert end(process) == ""
    finally:
        process.kill()
        process.communicate()
    assert catalogue.with_suffix(".model").stat().st_mtime_ns != before
    assert len(stored_verdicts(catalogue)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_a_new_folder_is_read_in_the_background(world, start, tmp_path):
    folder = tmp_path / "fresh"
    shutil.copytree(world.fresh, folder)
    where = ("--catalogue", tmp_path / "new.sqlite")
    process = start("review", folder, *where, "--no-browser", "--port", 0, "--json")
    try:
        browser = opened(process)
        state = wait_for_job(browser)
        assert (state["fit"]["job"], state["fit"]["state"]) == ("catch-up", "done"), state
        assert state["photographs"] == len([*folder.glob("*.jpg"), *folder.glob("*.png")])
        assert state["suggestions"] > 0
        assert end(process) == ""
    finally:
        process.kill()
        process.communicate()


# a browser that ends only after it has shown the first page
BROWSER = """
import json, os, pathlib, re, sys, urllib.parse, urllib.request
file = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(sys.argv[1]).path))
address = re.search('url=([^"]+)"', file.read_text())[1]
cookies = urllib.request.HTTPCookieProcessor()
with urllib.request.build_opener(cookies).open(address) as page:
    text = page.read().decode()
modes = [oct(path.stat().st_mode & 0o777) for path in (file, file.parent)]
found = {"given": sys.argv[1:], "address": address, "file": str(file), "modes": modes, "page": text}
whole = pathlib.Path(sys.argv[0]).with_suffix(".json")
whole.with_suffix(".part").write_text(json.dumps(found))
os.replace(whole.with_suffix(".part"), whole)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
@pytest.mark.parametrize("program", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "kill"])
def test_a_browser_that_is_waited_for(catalogue, start, environment, tmp_path, program):
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    environment["BROWSER"] = f"{sys.executable} {script} %s"
    process = start("review", "--catalogue", catalogue, "--port", 0, "--json")
    try:
        person = opened(process)
        until = time.monotonic() + PATIENCE
        while not script.with_suffix(".json").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        answer = json.loads(script.with_suffix(".json").read_text())
        assert "Which tag?" in answer["page"]
        # other users see what a program is started with: a file, which they cannot read
        assert answer["given"] == [Path(answer["file"]).as_uri()]
        assert answer["modes"] == ["0o600", "0o700"]
        key = answer["address"].rpartition("=")[2]
        assert Browser(person.port).get(f"/?key={key}").status == 403  # it opens once
        assert end(process, program) == ""
    finally:
        process.kill()
        process.communicate()
    assert not Path(answer["file"]).parent.exists()


def test_a_folder_without_tags_gets_suggestions_by_name(world, tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    words = read_words("common")
    with open_for_scan(world.photos) as opened:
        opened.scan("embedded")
        assert opened.model.needs().tags
        options = SuggestOptions(vocabulary=words).by_name()
        contents = opened.photographs.with_tags()
        suggestions = opened.model.suggest(Annotator(), options, contents=contents)
        assert suggestions.n_photographs == len(world.tags_of)
        assert (
            suggestions.n_suggestions
            == opened.database.value("SELECT count(*) FROM suggestions")
            > 0
        )
        assert {tag.name for tag in opened.tags.list_all()} <= set(words)
        length = opened.database.value("SELECT max(length(evidence)) FROM suggestions")
        assert length == len(pack_evidence((), {"name": 1.0}))  # shares, and no kin yet
        assert opened.model.needs().n_new == 0  # the second start does not suggest again
        check_invariants(opened)
