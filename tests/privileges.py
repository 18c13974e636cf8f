"""Parts of tests that run as a user to whom files can be closed, also where the suite is root."""

import codecs
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NOBODY = 65534

for encoding in ("ascii", "cp437"):  # if nobody looks first, they stay unknown to the whole process
    codecs.lookup(encoding)


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


needs_root = pytest.mark.skipif(not _is_root(), reason="only root can give files to another user")


@contextmanager
def without_privileges() -> Iterator[None]:
    """The same process as an ordinary user: root becomes nobody, others stay who they are.

    In this process, not in one of its own: the interpreter may lie where only root can read. So
    whatever the part needs has to be imported before.
    """
    if not hasattr(os, "geteuid"):
        pytest.skip("Windows cannot close a file to its owner")
    if not _is_root():
        yield
        return
    groups = os.getgroups()
    try:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, 0)
        os.setresuid(_NOBODY, _NOBODY, 0)  # the real one too: os.access asks for it
    except PermissionError:
        os.setresgid(0, 0, 0)
        pytest.skip("root may not become another user in this container")
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


@contextmanager
def made_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach and write to; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="tagkin-"))
    try:
        if _is_root():
            os.chown(folder, _NOBODY, _NOBODY)
        yield folder
    finally:
        for inside, _, _ in os.walk(folder):  # from the top: what was closed opens for the walk
            os.chmod(inside, 0o700)
            for entry in os.scandir(inside):
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, 0o700)
        shutil.rmtree(folder)
