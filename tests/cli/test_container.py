"""The container: its files agree with each other and tagkin, and its command runs as written."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from lxml import etree

from tests.fork_server import Start

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging" / "container"
PORT = "8765"


def instructions() -> list[tuple[str, str]]:
    text = (FOLDER / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def only(name: str) -> str:
    (value,) = [rest for word, rest in instructions() if word == name]
    return value


def command() -> list[str]:
    return [str(word) for word in json.loads(only("CMD"))]


def compose() -> Any:
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


def test_the_image_is_slim_and_not_root():
    bases = [rest for word, rest in instructions() if word == "ARG"]
    assert bases == ["BASE=docker.io/library/debian:bookworm-slim"]
    words = [word for word, _ in instructions()]
    assert only("USER") == "tagkin"
    assert words.index("USER") > max(k for k, word in enumerate(words) if word in ("RUN", "COPY"))
    assert "--uid 1000" in dict(instructions())["RUN"]


def test_what_is_copied_is_there():
    for word, rest in instructions():
        if word == "COPY" and "--from" not in rest:
            *names, _ = rest.split()
            assert [name for name in names if not (ROOT / name).exists()] == []


def test_data_is_in_the_volume_and_photographs_are_not():
    assert only("VOLUME") == "/data"
    values = dict(pair.split("=", 1) for pair in shlex.split(only("ENV")))
    for name in ("HOME", "TAGKIN_CATALOGUES", "TAGKIN_CACHE"):
        assert values[name].startswith("/data")
    assert values["XDG_PICTURES_DIR"] == "/photographs"


def test_compose_keeps_photographs_read_only_and_the_page_at_home():
    service = compose()["services"]["tagkin"]
    photographs = [volume for volume in service["volumes"] if "/photographs" in volume]
    assert [volume.endswith(":/photographs:ro") for volume in photographs] == [True]
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert not service.get("privileged")
    assert (ROOT / "packaging/container" / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).is_file()


def test_every_file_has_the_same_ports_and_places():
    template = etree.parse(FOLDER / "unraid.xml").getroot()
    configs = {config.get("Target"): config for config in template.iter("Config")}
    assert set(configs) == {PORT, "/data", "/photographs"}
    assert configs["/photographs"].get("Mode") == "ro"
    assert configs["/data"].get("Mode") == "rw"
    assert template.findtext("Privileged") == "false"
    assert only("EXPOSE") == PORT
    password = command()[command().index("--password-file") + 1]
    assert password == f"/run/secrets/{next(iter(compose()['secrets']))}"


def test_every_command_is_one_of_tagkin(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_PICTURES_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    template = etree.parse(FOLDER / "unraid.xml").getroot()
    commands = [
        command(),
        compose()["services"]["tagkin"]["command"],
        shlex.split(template.findtext("PostArgs") or ""),
    ]
    for words in commands:
        assert words[0] == "review"
        # as there is no such file here, nothing is served
        result = run(*[re.sub(r"^(.*=)?(/run/secrets|/data)/", r"\1missing/", w) for w in words])
        assert result.exit_code == 1
        assert "missing/" in result.stderr
        assert "cannot be read" in result.stderr


@pytest.fixture
def served(start: Start, environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The command of the image, at a free port; its address."""
    (tmp_path / "password").write_text("correct horse battery")
    environment["XDG_PICTURES_DIR"] = str(tmp_path)
    words = [w.replace("/run/secrets/tagkin-password", "password") for w in command()]
    process = start(*words, "--port", "0", "--json")
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())["address"]
    process.send_signal(signal.SIGTERM)  # as a container ends
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM for another process")
def test_the_health_check_knows_a_healthy_one(served):
    _, _, words = only("HEALTHCHECK").partition("CMD ")
    program, *arguments = json.loads(words)
    assert program == "python3"
    code = arguments[-1].replace(f"http://127.0.0.1:{PORT}", served.rstrip("/"))
    assert code != arguments[-1]
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = arguments[-1].replace(f":{PORT}/", ":1/")  # where nobody answers
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
