"""The commands of a person whose photographs are in Immich."""

import contextlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tagkin.catalogue.known_catalogues import server_folder
from tests.cli.conftest import call, lines
from tests.cli.synthetic import make_photographs

from .serving import KEY


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: call(tmp_path / "cache", *words)


@pytest.fixture
def connected(run, immich, monkeypatch):
    """Run commands after `tagkin connect`."""
    monkeypatch.setenv("TAGKIN_IMMICH_KEY", KEY)
    result = run("connect", "immich", f"{immich.address}/")
    assert result.exit_code == 0, result.stderr
    monkeypatch.delenv("TAGKIN_IMMICH_KEY")
    return run


def test_connecting_keeps_the_key_for_this_user_alone(connected, immich):
    file = server_folder("immich") / "connection.json"
    assert json.loads(file.read_text()) == {"address": immich.address, "key": KEY}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_key_is_kept_for_this_user_alone_whoever_could_read_the_old_one(
    connected, run, immich, monkeypatch
):
    file = server_folder("immich") / "connection.json"
    file.chmod(0o644)
    monkeypatch.setenv("TAGKIN_IMMICH_KEY", KEY)
    assert run("connect", "immich", immich.address).exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_connect_refuses(run, immich, monkeypatch):
    result = run("connect", "immich", immich.address)
    assert result.exit_code == 1
    assert "put it into TAGKIN_IMMICH_KEY" in result.stderr
    monkeypatch.setenv("TAGKIN_IMMICH_KEY", "another-key")
    result = run("connect", "immich", immich.address)
    assert result.exit_code == 1
    assert "does not know the key" in result.stderr
    assert "another-key" not in result.stderr
    monkeypatch.setenv("TAGKIN_IMMICH_KEY", "a key\nwith a line")
    assert run("connect", "immich", immich.address).exit_code == 1
    assert run("connect", "photoprism", immich.address).exit_code == 2
    assert not server_folder("immich").exists()
    immich.requests.clear()
    assert run("connect", "immich", immich.address, "--dry-run").exit_code == 0
    assert immich.requests == []
    assert not server_folder("immich").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_the_key_is_neither_in_the_list_of_processes_nor_in_a_log(immich, tmp_path):
    seen = []

    def look() -> None:
        for folder in os.listdir("/proc"):
            if folder.isdigit():
                with contextlib.suppress(OSError):
                    seen.append(Path(f"/proc/{folder}/cmdline").read_bytes())

    immich.fail("GET /users/me$", look)
    code = "import logging; logging.basicConfig(level=0); from tagkin.cli import main; main()"
    environment = os.environ | {"TAGKIN_IMMICH_KEY": KEY, "TAGKIN_DEBUG": "1"}
    command = [sys.executable, "-c", code, "connect", "immich", immich.address]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "Connected" in result.stderr
    assert KEY not in result.stdout + result.stderr
    assert any(immich.address.encode() in line for line in seen)
    assert not any(KEY.encode() in line for line in seen)


def test_from_scan_to_undo(connected, immich, tmp_path):
    """Every command of a person, on photographs that a model can learn from."""
    tags = make_photographs(tmp_path / "photos", 4)
    for i, (name, row) in enumerate(tags.items()):
        own = tuple(row) if i % 2 else ()
        immich.upload(name, (tmp_path / "photos" / name).read_bytes(), own)
    (scan,) = lines(connected("scan", "immich", "--json").stdout)
    assert (scan["folder"], scan["photographs"], scan["untagged"]) == ("immich", 24, 12)
    result = connected("suggest", "immich", "--threshold", "0.05", "--json")
    assert result.exit_code == 0, result.stderr
    first, *_ = suggested = [line for line in lines(result.stdout) if "suggestions" in line][:-1]
    assert first["file"].startswith("immich/2024/05/")
    photo, tag = first["file"], first["suggestions"][0]["tag"]
    assert len(suggested) > 1
    assert connected("accept", photo, "--tag", tag).exit_code == 0
    (status,) = lines(connected("status", "immich", "--json").stdout)
    assert (status["root"], status["n_to_write"]) == ("immich", 1)
    result = connected("write", "immich")
    assert "wrote 1 tag into 1 photograph" in result.stderr
    (server_photo,) = (p for p in immich.photos.values() if p.checksum.hex()[:12] in photo)
    assert immich.tags_of(server_photo) == {tag}
    (explained,) = lines(connected("explain", photo, "--json").stdout)
    texts = [source["text"] for entry in explained["tags"] for source in entry["said"]]
    assert "is in Immich" in texts
    assert any(text.startswith("written to Immich by run") for text in texts)
    result = connected("undo", "immich")
    assert "removed its tags from 1 photograph" in result.stderr
    assert immich.tags_of(server_photo) == set()
    assert "Wrote 1 tag" in connected("history", "immich").stdout


def test_finding_in_the_collection_of_the_server_or_a_folder_of_it(connected, immich, tmp_path):
    for name in make_photographs(tmp_path / "photos", 1):
        immich.upload(name, (tmp_path / "photos" / name).read_bytes())
    for folder in ("immich", tmp_path / "photos"):  # so no collection is the only one
        assert connected("scan", folder).exit_code == 0
    for folder in ("immich", "immich/2024", "immich/2024/05"):
        result = connected("find", "--folder", folder, "red", "--json")
        assert result.exit_code == 0, result.stderr
        (found,) = lines(result.stdout)
        assert len(found["photographs"]) == len(immich.photos)
        assert {photo["file"][:15] for photo in found["photographs"]} == {"immich/2024/05/"}


def test_a_folder_cannot_name_a_server(run, immich, tmp_path):
    """Whoever gives you a folder cannot make tagkin connect anywhere."""
    folder = tmp_path / "servers" / "immich"
    make_photographs(folder, 1)
    connection = {"address": immich.address, "key": KEY}
    (folder / "connection.json").write_text(json.dumps(connection))
    assert run("scan", folder).exit_code == 0
    assert immich.requests == []


def test_a_collection_without_its_connection_says_how_to_connect(connected, immich, photos):
    assert connected("scan", "immich").exit_code == 0
    (server_folder("immich") / "connection.json").unlink()
    result = connected("scan", "immich")
    assert result.exit_code == 1
    assert "tagkin connect immich ADDRESS" in result.stderr
    assert connected("status", "immich").exit_code == 0
