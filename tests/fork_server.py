"""Programs in processes of their own that start at once: forked where everything is imported.

A process that imports scikit-learn takes a second before it does anything. Here one process
imports what commands use, and then forks for each of them. What is started is a small program,
`tests.fork_client`, that stands for the command: signals to it reach the command, its exit code is
the command's, and if it is killed, so is the command. A command ends as any interpreter does.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from .fork_client import LENGTH, PASSED_ON

__all__ = ["Start", "fork_server"]

ROOT = Path(__file__).parents[1]
# Imported once, as commands do it. Nothing that starts threads.
MODULES = (
    "tagkin.annotator.learning",
    "tagkin.catalogue",
    "tagkin.cli.commands.review",
    "tagkin.cli.commands.suggest",
    "tagkin.cli.commands.train",
    "tagkin.server.serving",
    "tagkin.server.session",
)

Start = Callable[..., "subprocess.Popen[Any]"]


@contextlib.contextmanager
def fork_server() -> Iterator[Start]:
    """A function like `subprocess.Popen`, of what follows ``python``: ``["-m", "tagkin", ...]``."""
    if not hasattr(os, "fork"):
        yield lambda command, **settings: subprocess.Popen([sys.executable, *command], **settings)
        return
    with tempfile.TemporaryDirectory() as folder:  # an address has few characters
        address = os.path.join(folder, "address")
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", address],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        )
        with server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            client = [sys.executable, "-I", "-S", str(ROOT / "tests" / "fork_client.py"), address]
            yield lambda command, **settings: subprocess.Popen([*client, *command], **settings)
        # its input has been closed, which it takes as the end


def serve(address: str) -> Callable[[], None] | None:
    """Fork for every request until the input ends; in a child, what it is to do is returned."""
    atexit.register(_leave_other_packages)  # the first one, which is called last
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            request_socket, _ = listening.accept()
            _forget_those_that_ended()
            with request_socket:
                if not os.fork():
                    listening.close()
                    return _start_command(request_socket)
    return None


def _leave_other_packages() -> None:
    """Let an interpreter that ends not take scikit-learn and the like apart, module by module.

    It would write to every page of memory that it shares with the server, each of which is copied
    then: that takes twice as long as all else. What is ours is taken apart as in any process.
    """
    for name, module in list(sys.modules.items()):
        if "site-packages" in (getattr(module, "__file__", None) or ""):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))  # never freed
            del sys.modules[name]


def _start_command(request_socket: socket.socket) -> Callable[[], None]:
    """Fork once more: one process is the command, the other looks after it and does not return."""
    request, streams = _receive(request_socket)
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # a fork forgets one that comes too soon
    child = os.fork()
    if child:
        for stream in (0, 1, *streams):
            os.close(stream)
        _look_after(child, request_socket)
    request_socket.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", errors=errors, closefd=False)
        for number, mode, errors in (
            (0, "r", "surrogateescape"),
            (1, "w", "strict"),
            (2, "w", "backslashreplace"),
        )
    )
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    return lambda: _run(*request["command"])


def _forget_those_that_ended() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _receive(request_socket: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, streams, *_ = socket.recv_fds(request_socket, LENGTH, 3)
    text = request_socket.recv(
        int.from_bytes(head), socket.MSG_WAITALL
    )  # and nothing of what follows it
    return marshal.loads(text), streams


def _look_after(child: int, request_socket: socket.socket) -> NoReturn:
    """Pass signals on, or kill it where nobody waits for it any more; tell how it ended."""

    def listen() -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            while number := request_socket.recv(1):
                os.kill(child, number[0])
            os.kill(child, signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()
    _, status = os.waitpid(child, 0)
    try:
        request_socket.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
    finally:
        os._exit(0)


def _run(program: str, what: str, *arguments: str) -> None:
    """As ``python`` runs ``-m module ...`` and ``-c code ...``."""
    sys.argv = [what if program == "-m" else program, *arguments]
    if program == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(what, {"__name__": "__main__"})


if __name__ == "__main__":
    work = serve(sys.argv[1])
    if work is not None:
        work()
