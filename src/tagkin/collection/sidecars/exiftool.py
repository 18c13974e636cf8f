"""Run exiftool as one process for many photographs, because starting it is slow."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO

from tagkin.errors import InvalidInput

__all__ = ["ExifTool", "ExifToolError", "check_exiftool"]

# It declares `tagkin:Written`. A configuration of exiftool is a program; naming one stops exiftool
# from running a configuration in the current folder, which may be a folder of photographs.
_CONFIGURATION = str(Path(__file__).with_name("exiftool.config"))
_STAY_OPEN = ["exiftool", "-config", _CONFIGURATION, "-stay_open", "True", "-@", "-"]
_COMMON = ["-common_args", "-charset", "filename=utf8", "-q"]
# exiftool would wait forever at the end of its input, for example after this process was killed.
# So its input comes from a shell that then tells it to stop.
_FEEDER = 'cat; printf "%s\\n" -stay_open False'


class ExifToolError(Exception):
    """A command of exiftool failed; the message is the reason."""


class ExifTool:
    """A process of exiftool that runs one command after the other.

    The first command starts it, and a later command restarts it if it ended. It stops at the end
    of the ``with`` block, or when this process ends.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._input: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._n_commands = 0

    def __enter__(self) -> ExifTool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, *arguments: str) -> str:
        """Run a command and return its standard output.

        Raises `ExifToolError` if the command failed or the process ended.
        """
        if any("\n" in argument or "\r" in argument for argument in arguments):
            raise ExifToolError("a line break in a name")  # each line is an argument
        commands, answers, errors = self._start()
        self._n_commands += 1
        lines = [*arguments, "-echo4", "${status}", f"-execute{self._n_commands}", ""]
        ready = b"{ready%d}" % self._n_commands
        output = []
        try:
            commands.write(os.fsencode("\n".join(lines)))
            commands.flush()
            while (line := answers.readline()).rstrip() != ready:
                if not line:
                    raise BrokenPipeError
                output.append(line)
        except BrokenPipeError:
            self.close()
            raise ExifToolError("it ended unexpectedly") from None
        # a filter of values also puts its mark before messages
        message, _, status = _read_and_clear(errors).replace("\x1f", "").rpartition("\n")
        # versions before 12.10 do not report their status
        if status != "0" and (status.isdigit() or message.startswith("Error")):
            lines = message.strip().splitlines() or ["it gave no reason"]
            # warnings come before the error
            reason = next((line for line in lines if line.startswith("Error")), lines[0])
            raise ExifToolError(reason.split(" - ")[0])
        return b"".join(output).decode("utf-8", "replace")

    def close(self) -> None:
        """Stop the process after its current command."""
        opened: tuple[contextlib.AbstractContextManager[object] | None, ...] = (
            self._input,
            self._process,
            self._errors,
        )
        self._input = self._process = self._errors = None
        for closing in filter(None, opened):
            with contextlib.suppress(BrokenPipeError), closing:
                pass  # leaving the block of a process closes its pipes and waits for its end

    def _start(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Start the process if needed; return the files for commands, answers and errors."""
        if self._process is None or self._errors is None:
            check_exiftool()
            self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed above)
            source: int | IO[bytes] = subprocess.PIPE
            if os.name == "posix":
                self._input = subprocess.Popen(  # noqa: S603 (a fixed command)
                    ["sh", "-c", _FEEDER],  # noqa: S607 (found on PATH)
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                assert self._input.stdout is not None
                source = self._input.stdout
            self._process = subprocess.Popen(  # noqa: S603 (a fixed command)
                [*_STAY_OPEN, *_COMMON], stdin=source, stdout=subprocess.PIPE, stderr=self._errors
            )
            if self._input is not None and self._input.stdout is not None:
                # only exiftool holds it now, so the feeder ends when exiftool ends
                self._input.stdout.close()
        feeder = self._input or self._process
        assert feeder.stdin is not None
        assert self._process.stdout is not None
        return feeder.stdin, self._process.stdout, self._errors


def check_exiftool() -> None:
    """Raise `InvalidInput` if exiftool is not installed."""
    if shutil.which("exiftool") is None:
        raise InvalidInput(
            "Writing tags into photographs needs exiftool, which is not installed. Install it "
            "(apt install libimage-exiftool-perl, brew install exiftool), or write sidecars."
        )


def _read_and_clear(errors: IO[bytes]) -> str:
    """Return and remove the content of a file that an idle process writes to."""
    errors.seek(0)
    content = errors.read()
    errors.seek(0)
    errors.truncate()
    return content.decode("utf-8", "replace").rstrip()
