"""What takes long to build and is only read: built once for all processes of a test run."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tagkin.filesystem import folder_lock


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """A folder that the first process that asks for it fills; others wait for it and read.

    Parameters
    ----------
    factory : pytest's ``tmp_path_factory``
    name : str
        Of the folder.
    build : function of Path
        Puts everything into an empty folder.
    """
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # each process has a folder of its own in that of the run
    folder, done = shared / name, shared / f"{name}.built"
    with folder_lock(shared, f"{name}.lock", patience=600):
        if not done.exists():
            folder.mkdir()
            build(folder)
            done.touch()
    return folder
