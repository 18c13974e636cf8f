"""The bundle's own files, and what is made around it; `release.try_bundle` tries a whole one."""

import configparser
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from release.__main__ import changes, check_sums, with_addresses
from release.bundle import PARTS, ROOT, build_downloads, debian_package, forget_origin
from tagkin.version import __version__

NOTE = """
import json, os, sys
names = ("LD_LIBRARY_PATH", "PYINSTALLER_RESET_ENVIRONMENT")
print(json.dumps([__spec__.name, sys.argv, *map(os.environ.get, names)]))
"""


@pytest.fixture
def launch(tmp_path: Path) -> Any:
    """Run the launcher beside a tagkin that only says how it was started."""
    for name in ("__main__.py", "job.py", "cli/dropped.py"):
        file = tmp_path / "tagkin" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(NOTE)
    (tmp_path / "tagkin/__init__.py").touch()

    def run(*words: str, **variables: str) -> tuple[list[str], str | None, str]:
        command = [sys.executable, str(PARTS / "launcher.py"), *words]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)} | variables
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        module, argv, libraries, is_fresh = json.loads(done.stdout)
        assert is_fresh == "1"  # a process that it starts finds the bundle's libraries
        return argv[1:], libraries, module

    return run


def test_the_launcher_is_the_command_line(launch, tmp_path):
    assert launch()[0] == []
    assert launch("scan", str(tmp_path))[0] == ["scan", str(tmp_path)]
    assert launch("-m", "tagkin.job", "CATALOGUE", "fit")[0] == ["CATALOGUE", "fit"]


def test_a_folder_that_is_dropped_on_it_is_opened_on_the_page(launch, tmp_path):
    words, _, module = launch(str(tmp_path))
    assert (words, module) == ([str(tmp_path)], "tagkin.cli.dropped")
    assert importlib.util.find_spec(module)
    words, _, module = launch(str(tmp_path / "nothing"))
    assert (words, module) == ([str(tmp_path / "nothing")], "tagkin.__main__")


def test_other_programs_get_their_own_libraries(launch):
    assert launch(LD_LIBRARY_PATH="/bundle", LD_LIBRARY_PATH_ORIG="/theirs")[1] == "/theirs"
    assert launch(LD_LIBRARY_PATH="/bundle")[1] is None


def test_menus_offer_it_for_folders():
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(PARTS / "tagkin.desktop")
    values = entry["Desktop Entry"]
    assert values["Exec"] == "tagkin %f"
    assert values["MimeType"] == "inode/directory;"
    assert values["Terminal"] == "false"  # all is on the page
    if shutil.which("desktop-file-validate"):
        subprocess.run(["desktop-file-validate", PARTS / "tagkin.desktop"], check=True)


def test_the_spec_is_python_and_finds_its_files():
    text = (PARTS / "tagkin.spec").read_text()
    compile(text, "tagkin.spec", "exec")
    assert (PARTS / re.findall(r'Analysis\(\s*\["(.+?)"\]', text)[0]).is_file()
    icon = (ROOT / "src/tagkin/server/static/icon.svg").read_text()
    circle = re.search(r"re.findall\(r'(.+?)', svg\)", text)
    assert circle
    assert len(re.findall(circle[1], icon)) == icon.count("<circle") == 3


def make_bundle(folder: Path) -> Path:
    """Make a folder like that of a bundle, which only its user may read."""
    bundle = folder / "tagkin"
    static = bundle / "_internal/tagkin/server/static"
    static.mkdir(parents=True)
    (static / "icon.svg").write_text("<svg/>")
    (bundle / "tagkin").write_text("#!/bin/sh\n")
    for path in (bundle, *bundle.rglob("*")):
        path.chmod(0o700 if path.is_dir() or path.name == "tagkin" else 0o600)
    return bundle


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed")
def test_a_debian_package_is_the_same_each_time(tmp_path, monkeypatch):
    bundle = make_bundle(tmp_path)
    monkeypatch.setattr("release.bundle.BUILD", tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    package = debian_package(bundle, "1.2.3", tmp_path)
    first = package.read_bytes()
    assert debian_package(bundle, "1.2.3", tmp_path).read_bytes() == first

    listed = subprocess.run(
        ["dpkg-deb", "--contents", package], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    for line in (
        r"drwxr-xr-x root/root .* \./",
        r"-rwxr-xr-x root/root .* \./usr/lib/tagkin/tagkin",
        r"lrwxrwxrwx root/root .* \./usr/bin/tagkin -> \.\./lib/tagkin/tagkin",
        r"-rw-r--r-- root/root .* \./usr/share/applications/tagkin\.desktop",
        r"-rw-r--r-- root/root .* \./usr/share/icons/hicolor/scalable/apps/tagkin\.svg",
    ):
        assert re.search(rf"^{line}$", listed, re.MULTILINE), line
    assert ".py" not in listed


@pytest.mark.skipif(sys.platform != "linux", reason="other systems get a zip")
def test_everybody_may_read_the_downloads_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setattr("release.bundle.BUILD", tmp_path)
    bundle, target = make_bundle(tmp_path), tmp_path / "dist"
    target.mkdir()
    before = os.umask(0o077)
    try:
        build_downloads(bundle, target)
    finally:
        os.umask(before)
    (archive,) = target.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        modes = {member.name: member.mode for member in packed}
    assert modes.pop("tagkin/_internal/tagkin/server/static/icon.svg") == 0o644
    assert set(modes.values()) == {0o755}
    for package in target.glob("*.deb"):
        listed = subprocess.run(
            ["dpkg-deb", "--contents", package], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        kinds = {line[:10] for line in listed.splitlines()}
        assert kinds == {"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx"}


def test_the_bundle_does_not_say_where_it_was_built(tmp_path):
    note = tmp_path / "lib/site-packages/tagkin-1.2.3.dist-info/direct_url.json"
    note.parent.mkdir(parents=True)
    for file in (note, note.with_name("METADATA")):
        file.write_text("{}")
    forget_origin(tmp_path)
    assert [file.name for file in note.parent.iterdir()] == ["METADATA"]


def test_the_release_has_the_entry_of_its_version():
    entry = changes(__version__)
    assert entry.startswith(f"## {__version__}")
    assert entry.count("\n## ") == 0
    with pytest.raises(SystemExit, match=r"no entry for 99\.0"):
        changes("99.0")


def test_links_of_the_entry_lead_somewhere():
    pytest.importorskip("hatchling")
    text = with_addresses(changes(__version__), "https://example.org/tagkin", Path(sys.executable))
    targets = re.findall(r"\]\((.+?)\)", text)
    assert "https://example.org/tagkin/blob/main/docs/moments.md" in targets
    assert [target for target in targets if not target.startswith("https://")] == []


def test_checksums_are_those_that_sha256sum_reads(tmp_path):
    for name in ("b.whl", "a.deb", "SHA256SUMS"):
        (tmp_path / name).write_text(name)
    names = ["a.deb", "b.whl"]
    lines = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}" for name in names]
    assert check_sums(tmp_path).splitlines() == lines


def test_the_workflow_builds_for_all_systems_with_targets_that_there_are():
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    job = workflow["jobs"]["build"]
    runners = {each["runner"].split("-")[0] for each in job["strategy"]["matrix"]["include"]}
    assert runners == {"ubuntu", "macos", "windows"}
    assert workflow[True] == {"release": {"types": ["published"]}}  # YAML reads "on" as true
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    targets = re.findall(r"make (\w+)", commands)
    assert {"bundle", "release"} >= set(targets) != set()
    makefile = (ROOT / "Makefile").read_text()
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
    for module in re.findall(r"python -m (release[\w.]*)", commands):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module
