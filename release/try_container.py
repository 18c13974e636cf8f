"""Try the Containerfile without a registry: every line runs in a root of Debian's packages.

    python -m release.try_container

needs root and debootstrap. Then the image's command runs as the image has it: as user 1000, without
a capability, with a root and photographs that are read-only. Its health check, a login and a
folder are asked for. Settings of pip in the environment count inside, too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

from release.bundle import BUILD, ROOT, run
from tagkin.scenes import make_scenes

FILE = ROOT / "packaging" / "container" / "Containerfile"
CONTAINER, PORT, PASSWORD = BUILD / "container", 8765, "a password for this try"
# Mounts are in a namespace of their own, so they end with the program.
ENTER = 'mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"; '
READ_ONLY = (
    'mount --bind "$1" "$1"; mount -t tmpfs none "$1/tmp"; chmod 1777 "$1/tmp"; '
    'mount --bind "$1/data" "$1/data"; mount -o remount,bind,ro "$1"; '
)
USER = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--no-new-privs"]
USER += ["--bounding-set=-all", "--inh-caps=-all"]


def read_lines() -> Iterator[tuple[str, str]]:
    """Yield the instructions of the Containerfile and what they say."""
    for line in FILE.read_text().replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            word, rest = line.split(maxsplit=1)
            yield word, rest


def inside(root: Path, mounts: str, *command: str) -> list[str]:
    """Return the command that runs another one in a root."""
    script = mounts + 'root="$1"; shift; exec chroot "$root" "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "-", str(root), *command]


def run_lines(base: Path) -> tuple[Path, dict[str, str]]:
    """Run every line; return the root of the last stage, and its settings."""
    stages: dict[str, Path] = {}
    settings: dict[str, str] = {}
    root, here = base, "/"
    for word, rest in read_lines():
        if word == "FROM":
            name = rest.split()[-1] if " AS " in rest else "image"
            root, here = CONTAINER / name, "/"
            run("cp", "-a", base, root)
            stages[name], settings = root, {}
        elif word == "WORKDIR":
            here = rest
            (root / here.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            source, (*names, target) = ROOT, shlex.split(rest)
            if names[0].startswith("--from="):
                source = stages[names.pop(0).partition("=")[2]]
            place = root / os.path.join(here, target).lstrip("/")
            for path in (source / name.lstrip("/") for name in names):
                if path.is_dir():
                    shutil.copytree(path, place, symlinks=True)
                else:
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, place)
        elif word == "RUN":
            pip = [f"{name}={value}" for name, value in os.environ.items() if name[:4] == "PIP_"]
            variables = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", *pip]
            line = ["env", "-i", *variables, "sh", "-c", f"cd {here} && {rest}"]
            run(*inside(root, ENTER, *line))
        else:
            settings[word] = rest
    return root, settings


def main() -> None:
    """Build the root, and use its page."""
    shutil.rmtree(CONTAINER, ignore_errors=True)
    base = CONTAINER / "base"
    base.parent.mkdir(parents=True)
    run("debootstrap", "--variant=minbase", "bookworm", base)
    if certificates := os.environ.get("PIP_CERT"):
        # at a place of its own: a package brings others to the usual place
        shutil.copy(certificates, base / "pip.pem")
        os.environ["PIP_CERT"] = "/pip.pem"
    root, settings = run_lines(base)
    make_scenes(root / "photographs" / "2024", 60, 30)
    secret = root / json.loads(settings["CMD"])[-1].lstrip("/")
    secret.parent.mkdir(parents=True, exist_ok=True)
    secret.write_text(PASSWORD)
    words = json.loads(settings["ENTRYPOINT"]) + json.loads(settings["CMD"])
    as_user = [*USER, "env", "-i", *shlex.split(settings["ENV"]), *words]
    command = inside(root, ENTER + READ_ONLY, *as_user)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            text = ""
            while "http://" not in text:
                line = process.stderr.readline() if process.stderr else ""
                text += line or exit(f"It ended:\n{text}")
            check = re.sub(r".*CMD ", "", settings["HEALTHCHECK"], count=1)
            run(*inside(root, ENTER, *json.loads(check)))
            opener = build_opener(HTTPCookieProcessor(CookieJar()))
            form = f"password={PASSWORD.replace(' ', '+')}".encode()
            login = f"http://127.0.0.1:{PORT}/login"
            with opener.open(login, form, timeout=60) as answer:
                address = answer.url.rpartition("/")[0]
            with opener.open(f"{address}/folders", timeout=60) as answer:
                page = answer.read().decode()
            if ">2024<" not in page:
                raise SystemExit(f"The page shows no folder:\n{page}")
        finally:
            process.terminate()
    print(f"The image works; it ended with {process.returncode}.")


if __name__ == "__main__":
    main()
