"""Build a release of the last commit: ``make release ADDRESS=https://...``.

The commit is unpacked into a folder of its own, so no other file gets in. sdist and wheel are built
twice and must agree byte for byte. Then come this system's bundle, the entry of the changelog, and
the checksums of all files in ``dist``.
"""

from __future__ import annotations

import filecmp
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from release.bundle import (
    BUILD,
    DIST,
    ROOT,
    build_bundle,
    build_downloads,
    build_packages,
    python_of,
)


def changes(version: str) -> str:
    """Return the entry of a version in the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)}\b.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"CHANGELOG.md has no entry for {version}.")
    return found[0].strip() + "\n"


def with_addresses(text: str, address: str, python: Path) -> str:
    """Return a text whose links have whole addresses; `python` has hatchling."""
    code = "import hatch_build, sys; sys.stdout.write(hatch_build.with_addresses(*sys.argv[1:]))"
    command = [str(python), "-X", "utf8", "-c", code, text, address]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8")  # noqa: S603
    return done.stdout


def export(folder: Path) -> None:
    """Unpack the last commit into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)  # noqa: S607
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def check_sums(folder: Path) -> str:
    """Return the SHA-256 of every file in a folder, as ``sha256sum --check`` reads them."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    sums = [(hashlib.sha256(path.read_bytes()).hexdigest(), path.name) for path in files]
    return "".join(f"{digest}  {name}\n" for digest, name in sums)


def main(address: str) -> None:
    """Build everything."""
    if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT, check=False).returncode:  # noqa: S607
        raise SystemExit("Files differ from the last commit, which would be released without them.")
    asked = ["git", "log", "-1", "--format=%ct"]
    when = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    os.environ["SOURCE_DATE_EPOCH"] = when.stdout.strip()
    shutil.rmtree(DIST, ignore_errors=True)
    for name, target in {"source": DIST, "again": BUILD / "twice"}.items():
        export(BUILD / name)
        build_packages(BUILD / name, target, address)
    wheel, sdist = sorted(DIST.iterdir(), key=lambda path: path.suffix, reverse=True)
    for path in (wheel, sdist):
        if not filecmp.cmp(path, BUILD / "twice" / path.name, shallow=False):
            raise SystemExit(f"{path.name} is different when it is built again.")
    build_downloads(build_bundle(wheel), DIST)
    text = changes(wheel.name.split("-")[1])
    text = with_addresses(text, address, python_of(BUILD / "packages"))
    (DIST / "CHANGES.md").write_text(text, encoding="utf-8")
    (DIST / "SHA256SUMS").write_text(check_sums(DIST), encoding="utf-8")
    print((DIST / "SHA256SUMS").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("Say where the project lives: make release ADDRESS=https://...")
    main(sys.argv[1].rstrip("/"))
