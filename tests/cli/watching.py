"""What a process and those it starts do to the machine: sockets opened, paths changed.

Where strace is installed it sees every system call; everywhere, Python's audit events show what
Python code does.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# It stops a process at the calls that are asked for only, not at all of them.
STRACE = ["strace", "--seccomp-bpf", "-ff", "-qq", "-y", "-s", "4096"]


def _may_trace() -> bool:
    """Whether strace is there and may be used: containers forbid it at times."""
    command = [*STRACE, "-e", "trace=socket", "-o", os.devnull, sys.executable, "-c", ""]
    return shutil.which("strace") is not None and subprocess.run(command).returncode == 0


WATCHERS = ["strace", "audit"] if _may_trace() else ["audit"]  # the one that sees most first

_CHANGES = (
    "chmod|chown|creat|fchmodat|fchownat|lchown|link|linkat|mkdir|mkdirat|mknod|mknodat|rename|"
    "renameat|renameat2|rmdir|symlink|symlinkat|truncate|unlink|unlinkat|utime|utimensat|utimes"
)
_CALL = re.compile(r"(?P<name>\w+)\((?P<rest>.*)")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<name>(?:[^"\\]|\\.)*)"')

# Run before anything else: every event goes to the file that is named first.
_AUDITED = """
import json, os, sys
log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
CHANGES = {"os.chmod", "os.chown", "os.link", "os.mkdir", "os.mkfifo", "os.remove", "os.rename",
           "os.rmdir", "os.symlink", "os.truncate", "os.utime", "sqlite3.connect"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

def watch(event, args):
    if event in ("socket.__new__", "socket.getaddrinfo", "socket.gethostbyname"):
        family = int(args[1]) if event == "socket.__new__" else -1
        line = ["socket", event, family]
    elif event == "open" and args[2] & WRITES and isinstance(args[0], (str, bytes)):
        line = ["change", event, os.path.abspath(os.fsdecode(args[0]))]
    elif event in CHANGES:
        paths = [os.path.abspath(os.fsdecode(a)) for a in args if isinstance(a, (str, bytes))]
        line = ["change", event, *paths]
    else:
        return
    os.write(log, (json.dumps(line) + "\\n").encode())

sys.addaudithook(watch)
"""


class Seen(NamedTuple):
    """What a process did."""

    ended: subprocess.CompletedProcess[str]
    sockets: list[str]
    changes: set[Path]


def watched(code: str, scratch: Path, env: dict[str, str], *, by: str) -> Seen:
    """Run Python code in a process of its own, watched by "strace" or by "audit"."""
    scratch.mkdir()
    trace = scratch / "trace"
    python = [sys.executable, "-B", "-c"]
    if by == "strace":
        calls = f"trace=/^({_CHANGES}|open|openat|openat2|socket)$"
        command = [*STRACE, "-e", calls, "-o", str(trace), *python, code]
    else:
        command = [*python, _AUDITED + code, str(trace)]
    ended = subprocess.run(
        command, env=env, cwd=scratch, capture_output=True, text=True, check=False
    )
    lines = [line for path in scratch.glob("trace*") for line in path.read_text().splitlines()]
    events = list(_of_strace(lines) if by == "strace" else map(json.loads, lines))
    sockets = [repr(what) for kind, *what in events if kind == "socket"]
    changes = {Path(path) for kind, _, *paths in events if kind == "change" for path in paths}
    return Seen(ended, sockets, changes - {trace})


def _of_strace(lines: list[str]) -> Iterator[list[str]]:
    for line in lines:
        call = _CALL.match(line)
        if call is None:
            continue
        name, rest = call["name"], call["rest"]
        if name == "socket":
            if not rest.startswith(("AF_UNIX", "AF_LOCAL")):  # within the machine
                yield ["socket", rest]
        elif not name.startswith("open") or re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", rest):
            if "= -1 EEXIST" in line or "= -1 ENOENT" in line:
                continue  # nothing was changed
            paths = [os.path.join(m["folder"] or "", m["name"]) for m in _PATH.finditer(rest)]
            yield ["change", name, *paths]
