"""Tests as on an aarch64 machine, emulated: ``python -m tests.emulation [arguments of pytest]``.

QEMU runs the programs of a small Debian of that architecture, with the packages of this
environment, but for torch. It takes ten times as long as the machine itself: without arguments the
tests of numbers run. It is for root on Debian, since a system is made in build/aarch64, which stays
there; what is mounted is gone when the tests end.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

from tests.processors import NUMBERS

PROJECT = Path(__file__).resolve().parent.parent
SYSTEM = PROJECT / "build" / "aarch64"
PACKAGES = f"usr/local/lib/python3.{sys.version_info.minor}/dist-packages"  # where Python looks
SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}  # of Debian, by their Python
NEEDED = ("qemu-aarch64-static", "debootstrap", "unshare")
PROCESSOR = "neoverse-n1"
GLIBC = range(17, 42)  # 2.x, for which wheels may be made
LEFT_OUT = {"torch", "tagkin"}  # one is large, the other is here
FORMATS = Path("/proc/sys/fs/binfmt_misc")
# An executable file of that architecture: its first bytes, and which of their bits count.
MAGIC = rb"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = rb"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"

INSIDE = """
set -e
mount --rbind /proc "$1/proc"
mount --rbind /dev "$1/dev"
for folder in "$2" "$(dirname "$2")/shared"; do
  if [ -d "$folder" ]; then mkdir -p "$1$folder"; mount --bind "$folder" "$1$folder"; fi
done
root=$1 project=$2; shift 2
exec chroot "$root" sh -c 'cd "$0" && exec python3 -m pytest "$@"' "$project" "$@"
"""


def check_possible(version: tuple[int, int], missing: Iterable[str], is_root: bool) -> None:
    """Refuse where it cannot be done, and say what to do."""
    if missing := list(missing):
        sys.exit(
            f"{', '.join(missing)}: not found. On Debian as root: apt-get install qemu-user-static "
            "debootstrap"
        )
    if not is_root:
        sys.exit("Only root can make another system and change to it.")
    if version not in SUITES:
        known = " or ".join(".".join(map(str, program)) for program in SUITES)
        sys.exit(
            f"This is Python {'.'.join(map(str, version))}; Debian's that can be emulated have "
            f"{known}. Try: make PYTHON=python3.11 ..."
        )


def by_kind(files: Iterable[Distribution]) -> tuple[list[Distribution], list[str]]:
    """Packages that are the same on every machine, and those to get anew, as name==version."""
    same, other = [], []
    for options in files:
        if options.name.lower() in LEFT_OUT:
            continue
        if "Root-Is-Purelib: false" in (options.read_text("WHEEL") or ""):
            other.append(f"{options.name}=={options.version}")
        else:
            same.append(options)
    return same, sorted(other)


def emulate_programs() -> None:
    """Have the kernel start programs of that architecture by QEMU, also below another root."""
    if not (FORMATS / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", FORMATS], check=True)
    if not (FORMATS / "qemu-aarch64").exists():
        qemu = os.fsencode(shutil.which("qemu-aarch64-static") or "")
        line = b":".join([b"", b"qemu-aarch64", b"M", b"", MAGIC, MASK, qemu, b"F"])
        (FORMATS / "register").write_bytes(line)


def make_system(suite: str) -> None:
    """A small Debian with Python, and this environment's packages."""
    print("Making a system to emulate in build/aarch64 (ten minutes, once) ...", flush=True)
    shutil.rmtree(SYSTEM, ignore_errors=True)
    SYSTEM.mkdir(parents=True)
    options = ["--arch=arm64", "--variant=minbase", "--include=python3,git,make"]
    subprocess.run(["debootstrap", *options, suite, SYSTEM], check=True, stdout=subprocess.DEVNULL)
    same, other = by_kind(distributions())
    place = SYSTEM / PACKAGES
    for name in same:
        for file in name.files or []:
            source = Path(str(name.locate_file(file)))
            if ".." not in file.parts and source.is_file():
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place / file)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in reversed(GLIBC)]
    with tempfile.TemporaryDirectory() as wheels:
        options = ["--quiet", "--no-deps", "--only-binary=:all:", "--dest", wheels]
        options += [*platforms, "--platform=manylinux2014_aarch64"]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, *other], check=True)
        for wheel in sorted(Path(wheels).iterdir()):
            shutil.unpack_archive(wheel, place, "zip")
    subprocess.run([sys.executable, "-m", "compileall", "-q", place])  # there it takes minutes
    (SYSTEM / "made").touch()


def main(arguments: list[str]) -> int:
    """Run the tests; what pytest ends with."""
    version = sys.version_info[:2]
    check_possible(version, [name for name in NEEDED if not shutil.which(name)], not os.geteuid())
    emulate_programs()
    if not (SYSTEM / "made").exists():
        make_system(SUITES[version])
    tests = arguments or [f"tests/{name}" for name in NUMBERS]
    options = ["-p", "no:cacheprovider", "-o", "faulthandler_timeout=0"]
    options += ["--numprocesses", "auto", "--dist", "worksteal"]
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "PYTHONPATH": f"{PROJECT}/src:{PROJECT}",
        "QEMU_CPU": PROCESSOR,
    }
    inside = [INSIDE, "sh", str(SYSTEM), str(PROJECT), *options, *tests]
    return subprocess.run(["unshare", "--mount", "sh", "-c", *inside], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
