"""Work that is killed at its n-th system call that changes a file, whoever makes the call.

`tests.killing` counts calls of Python's `os`. SQLite and other libraries call the system
themselves: here the kernel stops the process at every call (``ptrace``), and those that change a
file are counted. Calls are counted, not time: for every n there is one outcome, as far as the work
itself does the same each time.
"""

import ctypes
import errno
import os
import platform
import re
import signal
from collections.abc import Callable
from functools import cache

import pytest

from tests.forking import in_child

__all__ = ["Traced", "can_trace", "needs_tracing", "traced"]

# Numbers of the calls that change files, by the kind of machine.
_NUMBERS = {
    "x86_64": {
        1: "write",
        18: "pwrite64",
        20: "writev",
        74: "fsync",
        75: "fdatasync",
        76: "truncate",
        77: "ftruncate",
        82: "rename",
        83: "mkdir",
        84: "rmdir",
        86: "link",
        87: "unlink",
        88: "symlink",
        258: "mkdirat",
        263: "unlinkat",
        264: "renameat",
        265: "linkat",
        266: "symlinkat",
        285: "fallocate",
        296: "pwritev",
        316: "renameat2",
    },
    "aarch64": {
        34: "mkdirat",
        35: "unlinkat",
        36: "symlinkat",
        37: "linkat",
        38: "renameat",
        45: "truncate",
        46: "ftruncate",
        47: "fallocate",
        64: "write",
        66: "writev",
        68: "pwrite64",
        70: "pwritev",
        82: "fsync",
        83: "fdatasync",
        276: "renameat2",
    },
}
# Devices and what the kernel tells: no files, but for those that lie in memory.
_NO_FILE = re.compile("/proc/|/dev/(?!shm/)")
_OF_OPEN_FILES = {"write", "pwrite64", "writev", "pwritev", "fsync", "fdatasync"}
# of <sys/ptrace.h>
_TRACE_ME, _SYSCALL, _SET_OPTIONS, _SYSCALL_INFO = 0, 24, 0x4200, 0x420E
_OPTIONS = 0x1 | 0x8 | 0x100000  # tell system calls from traps, follow threads, end with the tracer
_ENTRY = 1
_ALL = 0x40000000  # __WALL: threads as well


class _Info(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
        ("more", ctypes.c_uint64),
    ]


def _ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> int:
    result = int(_function()(request, pid, address, data))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@cache
def _function() -> Callable[..., int]:
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    call.restype = ctypes.c_long
    return call


class Traced:
    """What a traced child did.

    Attributes
    ----------
    steps : list of str
        Calls that change files, until it ended or was killed.
    killed : bool
        Whether it was; else it ended by itself, without an error.
    """

    def __init__(self, steps: list[str], killed: bool):
        self.steps, self.killed = steps, killed


def traced(work: Callable[[], object], kill_at: int | None = None) -> Traced:
    """Do work in a child, which is killed at its call `kill_at`, from 0, that changes a file.

    The call is not made. Without a number, the work is done and its calls are counted.

    Raises
    ------
    AssertionError
        If the child ended in any other way.
    """

    def stopped_first() -> None:
        os.setpgid(0, 0)
        _ptrace(_TRACE_ME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        work()

    child = in_child(stopped_first)
    os.waitpid(child, os.WUNTRACED)
    _ptrace(_SET_OPTIONS, child, data=_OPTIONS)
    steps: list[str] = []
    at, pending = child, 0
    while True:
        try:
            _ptrace(_SYSCALL, at, data=pending)
        except OSError as error:
            if error.errno != errno.ESRCH:  # a thread that was killed meanwhile
                raise
        at, status = os.waitpid(-child, _ALL)
        pending = 0
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if at == child:
                return _ended(status, steps)
            continue
        number = os.WSTOPSIG(status)
        if number == signal.SIGTRAP | 0x80:
            name = _changes_a_file(at, child)
            if name is not None:
                if len(steps) == kill_at:
                    os.kill(child, signal.SIGKILL)
                steps.append(name)
        elif number not in (signal.SIGTRAP, signal.SIGSTOP):  # those are the tracing's own
            pending = number


def _ended(status: int, steps: list[str]) -> Traced:
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return Traced(steps[:-1], True)
    assert os.WEXITSTATUS(status) == 0, "the work failed: see its traceback"
    return Traced(steps, False)


def _changes_a_file(thread: int, process: int) -> str | None:
    """The name of the call that a stopped thread is about to make, if it changes a file."""
    info = _Info()
    try:
        _ptrace(_SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info))
    except OSError:  # killed meanwhile
        return None
    name = _NUMBERS[platform.machine()].get(info.number) if info.op == _ENTRY else None
    if name not in _OF_OPEN_FILES:
        return name
    try:
        path = os.readlink(f"/proc/{process}/fd/{info.arguments[0]}")
    except OSError:
        return None
    # pipes and sockets have no path; what is said on a terminal is no change of a file
    return name if path.startswith("/") and not _NO_FILE.match(path) else None


@cache
def can_trace() -> bool:
    """Whether this machine lets a process trace its child."""
    if platform.system() != "Linux" or platform.machine() not in _NUMBERS:
        return False
    try:
        return not traced(lambda: None).killed
    except (OSError, AssertionError):
        return False


needs_tracing = pytest.mark.skipif(
    not can_trace(), reason="this system does not let a process trace its child"
)
