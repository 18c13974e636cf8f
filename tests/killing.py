"""Work on files that is killed, or fails, at a known step: the n-th call that touches a file.

Calls are counted, not time: for every n there is one outcome, the same on every machine. A call
that opens, writes, flushes, renames, links or removes counts once when it is about to happen; a
write counts a second time when half of its bytes are there.

>>> import tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp()) / "file"
>>> steps_of(lambda: path.write_bytes(b"text"))
['open', 'write', 'half of a write']
"""

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tests.forking import in_child

_CALLS = (
    "open",
    "write",
    "fsync",
    "rename",
    "replace",
    "link",
    "symlink",
    "unlink",
    "remove",
    "mkdir",
    "rmdir",
    "truncate",
    "ftruncate",
    "chmod",
    "utime",
)
Step = Callable[[str], None]
Also = Iterable[tuple[object, str]]
"""Further calls that are steps: objects, such as classes, and names of their functions."""


@contextmanager
def counted(step: Step, also: Also = ()) -> Iterator[None]:
    """Call a function with the name of each step before it is taken; it may not return."""
    others = [(owner, name, getattr(owner, name)) for owner, name in also]
    real = {name: getattr(os, name) for name in _CALLS if hasattr(os, name)}
    real_open = builtins.open

    def substitute(name):
        def call(*arguments, **options):
            step(name)
            if name == "write":
                number, data = arguments
                n_half = real["write"](number, bytes(data)[: len(data) // 2])
                step("half of a write")
                return n_half + real["write"](number, bytes(data)[n_half:])
            return real[name](*arguments, **options)

        return call

    def opened(file, mode="r", *arguments, **options):
        if not set(mode) & set("wax+"):
            return real_open(file, mode, *arguments, **options)
        step("open")
        return _File(real_open(file, mode, *arguments, **options), step)

    def watched(name, call):
        def watching(*arguments, **options):
            step(name)
            return call(*arguments, **options)

        return watching

    for name in real:
        setattr(os, name, substitute(name))
    for owner, name, call in others:
        setattr(owner, name, watched(name, call))
    builtins.open = io.open = opened
    try:
        yield
    finally:
        for name, call in real.items():
            setattr(os, name, call)
        for owner, name, call in others:
            setattr(owner, name, call)
        builtins.open = io.open = real_open


class _File:
    """A file that says when it is written to; nothing waits in a buffer."""

    def __init__(self, file, step):
        self._file, self._step = file, step

    def write(self, data):
        self._step("write")
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.flush()
        self._step("half of a write")
        self._file.write(data[half:])
        self._file.flush()
        return len(data)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def steps_of(work: Callable[[], object], also: Also = ()) -> list[str]:
    """The steps that work takes. It is done, in this process."""
    steps: list[str] = []
    with counted(steps.append, also):
        work()
    return steps


def killing_at(n: int) -> Step:
    """A function for `counted` that kills this process before step `n`, from 0."""
    left = n

    def step(name):
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    return step


def kill_at(n: int, work: Callable[[], object], also: Also = ()) -> bool:
    """Do work in a child that is killed before its step `n`, from 0; False if it has fewer.

    Raises
    ------
    AssertionError
        If the child ended in any other way.
    """

    def counted_work():
        with counted(killing_at(n), also):
            work()

    _, status = os.waitpid(in_child(counted_work), 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the work failed: see its traceback"
    return False


def kill_everywhere(
    work: Callable[[], object],
    prepare: Callable[[], object],
    check: Callable[[int], object],
    *,
    start: int = 0,
    stride: int = 1,
    also: Also = (),
) -> int:
    """Kill work at every `stride`-th of its steps, from step `start` on; return how often.

    Parameters
    ----------
    work : function
    prepare : function
        Called before each time: puts everything as it is before the work.
    check : function of int
        Called after each time with the step: asserts that nothing is lost. It may do the rest of
        the work.
    """
    n = start
    while True:
        prepare()
        if not kill_at(n, work, also):
            return len(range(start, n, stride))
        check(n)
        n += stride


@contextmanager
def failing_at(n: int, code: int = errno.ENOSPC) -> Iterator[list[str]]:
    """Let step `n` and all further writes fail as on a full disk; gives the steps taken so far.

    What frees space, unlinking, goes on.
    """
    steps: list[str] = []

    def step(name):
        steps.append(name)
        takes_space = name in ("open", "write", "half of a write", "fsync", "mkdir")
        if len(steps) - 1 == n or (len(steps) - 1 > n and takes_space):
            raise OSError(code, os.strerror(code))

    with counted(step):
        yield steps
