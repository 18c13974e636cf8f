"""exiftool, the program that everybody trusts, at hand for all tests that ask it something."""

import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

ExifTool = Callable[..., bytes]


@pytest.fixture(scope="session")
def exiftool() -> Iterator[ExifTool]:
    """What it writes to standard output for some arguments; it is started once for all of them."""
    if shutil.which("exiftool") is None:
        pytest.skip("exiftool is not installed")
    started = subprocess.Popen(
        ["exiftool", "-stay_open", "True", "-@", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with started as process:
        asked, answers = process.stdin, process.stdout
        assert asked is not None
        assert answers is not None

        def ask(*arguments: object) -> bytes:
            # each on a line; then how it ended, and that it did
            lines = [*map(str, arguments), "-echo3", "${status}", "-execute"]
            asked.write("".join(f"{line}\n" for line in lines).encode())
            asked.flush()
            reply = [*iter(answers.readline, b"{ready}\n")]
            *output, status = reply
            assert status == b"0\n", f"exiftool {arguments} ended so: {status!r}"
            return b"".join(output)

        yield ask
        asked.write(b"-stay_open\nFalse\n")
