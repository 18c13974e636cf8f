"""Try the Debian package of the bundle in a bare Debian, and measure it.

    python -m release.try_bundle dist/tagkin_*.deb

needs root, debootstrap, Chromium and ``make setup``. In a new Debian root without Python, a person
who is not root starts tagkin. Every command runs there. Then Chromium, outside, goes from *Choose a
folder* to an undone write. With 500 photographs, it measures the time to the first suggestion: of
the person's own tags, and of common tags by their names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

from release.bundle import BUILD, run
from release.try_commands import put_samples, try_commands
from tagkin.scenes import make_scenes
from tests.server.first_way import StartWindow
from tests.server.window import chromium

BARE = BUILD / "bare"
HOME, PERSON = Path("/home/person"), 1000
# The mount is in a namespace of its own, so it ends with the program.
INSIDE = f'mount -t proc proc {BARE}/proc && exec chroot --userspec={PERSON}:{PERSON} {BARE} "$@"'
ENTER = ["unshare", "--mount", "sh", "-c", INSIDE, "-", "env", "-i", "PATH=/usr/bin:/bin"]
ENTER += [f"HOME={HOME}", "sh", "-c", f'cd {HOME} && exec "$@"', "-"]
N_PHOTOGRAPHS, N_TAGGED = 500, 50
MOST_SECONDS, MOST_MEGABYTES, MOST_WAIT = 5, 450, 60
PATIENCE = 900_000  # ms; a busy machine is no fault


def make_bare(package: Path) -> int:
    """Make a bare Debian, install the package there, and return how many megabytes it takes."""
    shutil.rmtree(BARE, ignore_errors=True)
    run("debootstrap", "--variant=minbase", "bookworm", BARE)
    if shutil.which("python3", path=f"{BARE}/usr/bin"):
        raise SystemExit("This Debian has a Python, so it shows nothing.")
    shutil.copy(package, BARE / "tagkin.deb")
    run("chroot", BARE, "dpkg", "--install", "/tagkin.deb")
    files = [path for path in (BARE / "usr/lib/tagkin").rglob("*") if not path.is_symlink()]
    return sum(path.stat().st_size for path in files) // 1_000_000


def give_away(home: Path) -> None:
    """Let the person own their home."""
    for path in (home, *home.rglob("*")):
        os.chown(path, PERSON, PERSON)


def forget_pages() -> None:
    """Let the system read the program from the disk again, as after a restart."""
    os.sync()
    for path in (BARE / "usr/lib/tagkin").rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Started:
    """tagkin, started as its icon does, with a folder or without, until the end of a block."""

    def __init__(self, *folder: Path):
        self._command = [*ENTER, "tagkin", *map(str, folder)]

    def __enter__(self) -> Started:
        begin = time.perf_counter()
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)  # noqa: S603
        text, found = "", None
        while found is None:
            line = self._process.stderr.readline() if self._process.stderr else ""
            text += line or sys.exit(f"It ended:\n{text}")
            found = re.search(r"http://\S+", text)
        self.address: str = found[0]
        with build_opener(HTTPCookieProcessor()).open(self.address, timeout=60) as answer:
            answer.read()
        self.seconds = time.perf_counter() - begin
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        _, _, used = os.wait4(self._process.pid, 0)
        self.cpu = used.ru_utime + used.ru_stime


def walk(address: str, photographs: Path) -> None:
    """Go from Choose a folder to an undone write."""
    with chromium() as browser:
        window = StartWindow(browser, address)
        window.context.set_default_timeout(PATIENCE)
        window.look_at_folder("sample")
        window.use_folder()
        window.page.locator("#tags a").first.wait_for()
        window.tag_and_write("holiday")
        written = len(list(photographs.glob("*.xmp")))
        window.undo_write()
        left = len(list(photographs.glob("*.xmp")))
        if window.faults or not written or left:
            raise SystemExit(f"{written} written, {left} left, and the page says {window.faults}")


def drop_nothing(folder: Path) -> None:
    """Open a folder without photographs by the icon; the page has to say so."""
    with Started(folder) as dropped, chromium() as browser:
        window = StartWindow(browser, dropped.address)
        window.page.get_by_text(f"No photograph in {folder}").wait_for()


def time_to_suggestion(address: str, *, by_names: bool) -> float:
    """Return the seconds from the choice of a folder until a suggestion is shown."""
    with chromium() as browser:
        window = StartWindow(browser, address)
        window.context.set_default_timeout(PATIENCE)
        window.look_at_folder("many")
        begin = time.perf_counter()
        window.use_folder()
        if by_names:
            window.page.get_by_role("button", name="Suggest common tags").click()
        window.page.locator("#tags a").first.wait_for()
        return time.perf_counter() - begin


def main(package: str) -> None:
    """Try everything, and print what was measured."""
    megabytes = make_bare(Path(package))
    home = Path(f"{BARE}{HOME}")
    sample, many = home / "Pictures" / "sample", home / "Pictures" / "many"
    put_samples(home)
    make_scenes(sample, 60, 30)
    make_scenes(many, N_PHOTOGRAPHS, N_PHOTOGRAPHS - N_TAGGED)
    (home / "Pictures" / "empty").mkdir()
    give_away(home)
    forget_pages()
    with Started() as cold:
        pass
    print(f"Unpacked: {megabytes} MB. Start: {cold.seconds:.1f} s ({cold.cpu:.1f} s of CPU).")
    with Started() as running:
        walk(running.address, sample)
    drop_nothing(HOME / "Pictures" / "empty")
    print("The page works.", flush=True)
    try_commands([*ENTER, "tagkin"], home)
    print("All commands work.", flush=True)
    with Started() as warm:
        own = time_to_suggestion(warm.address, by_names=False)
    shutil.rmtree(home / ".cache")
    shutil.rmtree(home / ".local")
    (many / "metadata.jsonl").unlink()
    with Started() as again:
        by_names = time_to_suggestion(again.address, by_names=True)
    print(f"First suggestion on {N_PHOTOGRAPHS} photographs: of the tags on {N_TAGGED} of them")
    print(f"after {own:.0f} s ({warm.cpu:.0f} s of CPU), of common tags after {by_names:.0f} s")
    print(f"({again.cpu:.0f} s of CPU), with a load of {os.getloadavg()[2]:.1f}.")
    if megabytes > MOST_MEGABYTES or cold.seconds > MOST_SECONDS or by_names > MOST_WAIT:
        raise SystemExit("That is more than it may be.")


if __name__ == "__main__":
    main(*sys.argv[1:])
