"""exiftool as one process: what it says, how it fails, when it ends."""

import os
import signal
import subprocess
import sys

import pytest

from tagkin.collection.sidecars import ExifTool
from tagkin.collection.sidecars.exiftool import ExifToolError
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool, path_with_exiftool
from tests.collection.xmp_samples import subjects, with_xmp
from tests.forking import needs_fork
from tests.images.synthetic import picture, saved

pytestmark = [needs_exiftool, needs_fork]


@pytest.fixture
def starts(tmp_path, monkeypatch):
    """A file with the process number of every exiftool that is started."""
    log = tmp_path / "starts"
    monkeypatch.setenv("PATH", path_with_exiftool(tmp_path / "bin", f"echo $$ >> {log}"))
    return log


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "img.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    return str(path)


def test_one_process_for_all_commands(starts, photo):
    with ExifTool() as exiftool:
        assert not starts.exists()
        assert exiftool.run("-s3", "-MIMEType", photo) == "image/jpeg\n"
        with pytest.raises(ExifToolError, match=r"^Error: File not found$"):
            exiftool.run("-s3", "-MIMEType", f"{photo}.gone")
        assert exiftool.run("-s3", "-ImageWidth", photo) == f"{picture().shape[1]}\n"
    assert len(starts.read_text().split()) == 1


def test_much_is_said_and_complained_about(tmp_path, photo):
    """More than a pipe holds, both ways: nobody waits for the other."""
    gone = [str(tmp_path / f"{'long-name' * 20}-{i}.jpg") for i in range(600)]
    with ExifTool() as exiftool:
        with pytest.raises(ExifToolError, match="File not found"):
            exiftool.run("-s3", "-MIMEType", photo, *gone)
        assert len(exiftool.run("-list").encode()) > 100_000
        assert exiftool.run("-s3", "-MIMEType", photo) == "image/jpeg\n"


def test_one_that_was_killed_fails_one_command(starts, photo):
    with ExifTool() as exiftool:
        exiftool.run("-s3", "-MIMEType", photo)
        os.kill(int(starts.read_text()), signal.SIGKILL)
        with pytest.raises(ExifToolError, match="ended unexpectedly"):
            exiftool.run("-s3", "-MIMEType", photo)
        assert exiftool.run("-s3", "-MIMEType", photo) == "image/jpeg\n"
    assert len(starts.read_text().split()) == 2


def test_one_that_ends_at_a_command_is_not_waited_for(tmp_path, monkeypatch, photo):
    """It took the command; nothing comes after that, and what feeds it has nothing more to do."""
    ends = path_with_exiftool(tmp_path / "bin", "head -c 60 > /dev/null; exit 3")
    with ExifTool() as exiftool:
        with monkeypatch.context() as patch:
            patch.setenv("PATH", ends)
            with pytest.raises(ExifToolError, match="ended unexpectedly"):
                exiftool.run("-s3", "-MIMEType", photo)
        assert exiftool.run("-s3", "-MIMEType", photo) == "image/jpeg\n"


def test_a_name_is_not_read_as_several_arguments(starts, tmp_path, photo):
    with ExifTool() as exiftool, pytest.raises(ExifToolError, match="a line break"):
        exiftool.run("-s3", "-MIMEType", f"{photo}\n-o\n{tmp_path / 'new.jpg'}")
    assert not starts.exists()


def test_no_configuration_beside_photographs_is_run(tmp_path, monkeypatch, photo):
    """A configuration is a program; without a home folder, exiftool looks in the current folder."""
    ran = tmp_path / "ran"
    (tmp_path / ".ExifTool_config").write_text(f"open(F, '>{ran}'); close F; 1;\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOME", raising=False)
    with ExifTool() as exiftool:
        assert exiftool.run("-s3", "-MIMEType", photo) == "image/jpeg\n"
    assert not ran.exists()


def test_it_ends_with_a_process_that_was_killed(tmp_path, monkeypatch, photo):
    """The end that exiftool holds of a pipe closes then, and not before."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("PATH", path_with_exiftool(tmp_path / "bin", f"exec 9> {pipe}"))
    code = (
        "import os, signal, sys; from tagkin.collection.sidecars import ExifTool\n"
        "print(ExifTool().run('-s3', '-MIMEType', sys.argv[1]), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, photo], stdout=subprocess.PIPE)
    with process, open(pipe, "rb") as held:
        assert held.read() == b""  # waits for it
        assert process.stdout.read().split() == [b"image/jpeg"]
    assert process.returncode == -signal.SIGKILL


def test_the_error_is_told_not_the_warning_before_it(tmp_path, photo):
    """Warnings come first, and do not say why a file was refused."""
    other = tmp_path / "other.jpg"
    for path in (photo, other):
        with open(path, "wb") as file:
            file.write(with_xmp(saved(picture(), "JPEG"), subjects("dog")[:-40]))
    change = ("-XMP-dc:Subject+=sea", "-overwrite_original")
    command = ["exiftool", "-q", *change, str(other)]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    assert output.stderr.startswith("Warning: ")
    with ExifTool() as exiftool, pytest.raises(ExifToolError, match=r"^Error: File not found$"):
        exiftool.run(*change, photo, f"{photo}.gone")
