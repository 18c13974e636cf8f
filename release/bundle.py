"""Build the bundle: tagkin with its own Python, to double-click.

    make bundle

installs a wheel of this checkout, and PyInstaller, in an environment of its own, so no package for
development gets in. PyInstaller makes a folder (virus scanners distrust single files that unpack
themselves), and the files to download are made from it: on Linux a ``.deb`` and a ``.tar.gz``, on
Windows a ``.zip``, and on macOS a ``.zip`` of ``tagkin.app``.
"""

from __future__ import annotations

import os
import platform
import runpy
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD, DIST = ROOT / "build" / "bundle", ROOT / "dist"
PYINSTALLER = "pyinstaller>=6.10,<7"
PARTS = ROOT / "packaging" / "bundle"

_CONTROL = """Package: tagkin
Version: {version}
Architecture: {architecture}
Maintainer: The tagkin maintainers
Section: graphics
Priority: optional
Installed-Size: {size}
Depends: libc6 (>= {libc})
Recommends: libimage-exiftool-perl
Description: Learn from the tags on your photographs, and suggest tags for the rest
 A page in the browser suggests tags, with a confidence that was measured.
 Photographs stay on this machine.
"""


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> None:
    """Run a program; its failure ends the build."""
    print("+", *command, flush=True)
    environment = os.environ | {"PYTHONHASHSEED": "0"} | variables
    subprocess.run([str(word) for word in command], check=True, cwd=cwd, env=environment)  # noqa: S603


def python_of(folder: Path) -> Path:
    """Return the Python of a virtual environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def environment(folder: Path, *packages: str | Path) -> Path:
    """Make a new virtual environment with packages, and return its Python."""
    venv.create(folder, clear=True, with_pip=True)
    python = python_of(folder)
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages)
    return python


def build_packages(source: Path, target: Path, address: str = "") -> Path:
    """Build sdist and wheel of a checkout, and return the wheel."""
    python = environment(BUILD / "packages", "hatchling>=1.25")
    shutil.rmtree(target, ignore_errors=True)
    build = ("-m", "hatchling", "build", "--directory", target)
    run(python, *build, cwd=source, TAGKIN_ADDRESS=address)
    (wheel,) = target.glob("*.whl")
    return wheel


def forget_origin(environment: Path) -> None:
    """Remove the note of pip which says where tagkin's wheel was on this machine."""
    for note in environment.rglob("tagkin-*.dist-info/direct_url.json"):
        note.unlink()


def build_bundle(wheel: Path) -> Path:
    """Build the folder of the bundle from a wheel, and return it."""
    python = environment(BUILD / "environment", wheel, PYINSTALLER)
    forget_origin(BUILD / "environment")
    folders = ("--distpath", BUILD, "--workpath", BUILD / "work")
    shutil.rmtree(BUILD / "work", ignore_errors=True)
    run(python, "-m", "PyInstaller", "--noconfirm", *folders, PARTS / "tagkin.spec")
    return BUILD / ("tagkin.app" if sys.platform == "darwin" else "tagkin")


def set_modes(root: Path) -> None:
    """Let everybody read a folder and what is in it, whatever the umask of the builder is."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            is_open = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if is_open else 0o644)


def debian_package(bundle: Path, version: str, target: Path) -> Path:
    """Put the bundle into a Debian package, with an entry for menus and an icon."""
    root = BUILD / "deb"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(bundle, root / "usr/lib/tagkin", symlinks=True)
    icon = next(bundle.rglob("tagkin/server/static/icon.svg"))
    for file, place in {
        PARTS / "tagkin.desktop": "usr/share/applications/tagkin.desktop",
        icon: "usr/share/icons/hicolor/scalable/apps/tagkin.svg",
        ROOT / "LICENSE": "usr/share/doc/tagkin/copyright",
    }.items():
        (root / place).parent.mkdir(parents=True)
        shutil.copy(file, root / place)
    (root / "usr/bin").mkdir()
    (root / "usr/bin/tagkin").symlink_to("../lib/tagkin/tagkin")
    ask = ["dpkg", "--print-architecture"]
    architecture = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603
    size = sum(path.lstat().st_size for path in root.rglob("*")) // 1024
    libc = platform.libc_ver()[1]  # an older one lacks symbols that the programs here were made for
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        _CONTROL.format(version=version, architecture=architecture, size=size, libc=libc)
    )
    set_modes(root)
    package = target / f"tagkin_{version}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "--build", root, package)
    return package


def build_downloads(bundle: Path, target: Path) -> None:
    """Make the files that people download on this system."""
    version = runpy.run_path(str(ROOT / "src/tagkin/version.py"))["__version__"]
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    name = target / f"tagkin-{version}-{system}-{platform.machine().lower()}"
    if system == "macos":
        # as the Finder does: other archivers lose links, without which it does not start
        run("ditto", "-c", "-k", "--keepParent", bundle, f"{name}.zip")
    elif system == "windows":
        shutil.copy(PARTS / "Add to the Start menu.cmd", bundle)
        shutil.make_archive(str(name), "zip", bundle.parent, bundle.name)
    else:
        set_modes(bundle)
        shutil.make_archive(str(name), "gztar", bundle.parent, bundle.name)
        if shutil.which("dpkg-deb"):
            debian_package(bundle, version, target)


def main() -> None:
    """Build what this system's people download, from this checkout."""
    DIST.mkdir(exist_ok=True)
    build_downloads(build_bundle(build_packages(ROOT, BUILD / "wheel")), DIST)


if __name__ == "__main__":
    main()
