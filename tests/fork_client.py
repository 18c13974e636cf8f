"""The small program that stands for a command which `tests.fork_server` runs. It imports little.

It hands its streams, its folder and its environment over, passes signals on, and ends as the
command ends.
"""

import _thread
import marshal
import os
import signal
import socket
import sys
from typing import NoReturn

LENGTH = 8  # bytes of the length of a request
PASSED_ON = (signal.SIGINT, signal.SIGTERM)


def stand_for(address: str, command: list[str]) -> NoReturn:
    # They are waited for: a handler in Python would not be called for one that comes just before
    # the long wait for the end.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    request = {"command": command, "folder": os.getcwd(), "environment": dict(os.environ)}
    text = marshal.dumps(request)
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(address)
    socket.send_fds(asked, [len(text).to_bytes(LENGTH)], [0, 1, 2])
    asked.sendall(text)
    _thread.start_new_thread(pass_on, (asked,))
    for stream in (0, 1, 2):
        os.close(stream)  # the command's alone: who reads sees when it has ended
    code = int.from_bytes(asked.recv(4), signed=True)
    if code < 0:
        if -code != signal.SIGKILL:  # which nobody can handle
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
        os.kill(os.getpid(), -code)
    os._exit(code)


def pass_on(asked: socket.socket) -> NoReturn:
    while True:
        asked.sendall(bytes([signal.sigwait(PASSED_ON)]))


if __name__ == "__main__":
    stand_for(sys.argv[1], sys.argv[2:])
