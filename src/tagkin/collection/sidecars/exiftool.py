"""exiftool, started once for many photographs: that takes far longer than a command does."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from typing import IO, Any

from tagkin.errors import InvalidInput

__all__ = ["ExifTool", "ExifToolError", "check_exiftool"]

# A configuration of exiftool is a program. Without a home folder, exiftool would run one that lies
# in the current folder, which may be a folder of photographs; an empty name says to read none.
_STAYING = ["exiftool", "-config", "", "-stay_open", "True", "-@", "-"]
_ALWAYS = ["-common_args", "-charset", "filename=utf8", "-q"]
# At the end of its input exiftool waits for more, for ever; it is to end there, also where whoever
# started it was killed. So its input comes from this, where `cat` passes on what comes at once.
_UNTIL_THE_END = 'cat; printf "%s\\n" -stay_open False'


class ExifToolError(Exception):
    """A command that exiftool did not carry out; says why."""


class ExifTool:
    """exiftool, as a process that carries out one command after the other.

    It is started by the first command, and once more where it was ended in between. It ends with
    the ``with`` block, or with the process that started it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._input: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._n_commands = 0

    def __enter__(self) -> ExifTool:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def run(self, *arguments: str) -> str:
        """What a command writes to standard output.

        Raises
        ------
        ExifToolError
            If exiftool says that it failed, or is no longer there.
        InvalidInput
            If it is not installed.
        """
        if any("\n" in one or "\r" in one for one in arguments):
            raise ExifToolError("a line break in a name")  # they go in by lines
        commands, answers, errors = self._started()
        self._n_commands += 1
        lines = [*arguments, "-echo4", "${status}", f"-execute{self._n_commands}", ""]
        ready = b"{ready%d}" % self._n_commands
        said = []
        try:
            commands.write(os.fsencode("\n".join(lines)))
            commands.flush()
            while (line := answers.readline()).rstrip() != ready:
                if not line:
                    raise BrokenPipeError
                said.append(line)
        except BrokenPipeError:
            self.close()
            raise ExifToolError("it ended unexpectedly") from None
        complaint, _, status = _taken(errors).rpartition("\n")
        # versions before 12.10 do not know their status
        if status != "0" and (status.isdigit() or complaint.startswith("Error")):
            reason = complaint.strip() or "it gave no reason"
            raise ExifToolError(reason.splitlines()[0].split(" - ")[0])
        return b"".join(said).decode("utf-8", "replace")

    def close(self) -> None:
        """End the process, after what it is at."""
        running = [one for one in (self._input, self._process) if one is not None]
        errors = self._errors
        self._input = self._process = self._errors = None
        for one in running:
            with contextlib.suppress(BrokenPipeError), one:  # closes what leads to it, and waits
                pass
        if errors is not None:
            errors.close()

    def _started(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """What commands go into, what answers and what complaints come out of."""
        if self._process is None or self._errors is None:
            check_exiftool()
            self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed above)
            source: int | IO[bytes] = subprocess.PIPE
            if os.name == "posix":
                self._input = subprocess.Popen(  # noqa: S603 (a fixed command)
                    ["sh", "-c", _UNTIL_THE_END],  # noqa: S607 (PATH says where it is)
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                assert self._input.stdout is not None
                source = self._input.stdout
            self._process = subprocess.Popen(  # noqa: S603 (nothing of it comes from outside)
                [*_STAYING, *_ALWAYS], stdin=source, stdout=subprocess.PIPE, stderr=self._errors
            )
            if self._input is not None and self._input.stdout is not None:
                # no other process holds it: the end of exiftool is the end of what feeds it
                self._input.stdout.close()
        feeding = self._input or self._process
        assert feeding.stdin is not None
        assert self._process.stdout is not None
        return feeding.stdin, self._process.stdout, self._errors


def check_exiftool() -> None:
    """Refuse to go on where exiftool is not installed.

    Raises
    ------
    InvalidInput
    """
    if shutil.which("exiftool") is None:
        raise InvalidInput(
            "Tags are written into photographs by exiftool, which is not installed here. Install "
            "it (apt install libimage-exiftool-perl, brew install exiftool), or write sidecars."
        )


def _taken(errors: IO[bytes]) -> str:
    """What is in a file that another process writes to and rests now; it starts anew after that."""
    errors.seek(0)
    said = errors.read()
    errors.seek(0)
    errors.truncate()
    return said.decode("utf-8", "replace").rstrip()
