"""What short commands do not import: that is most of what they would take."""

import os
import subprocess
import sys

import pytest

from .conftest import call

# What takes long to import, and is for learning, measuring or drawing.
HEAVY = {
    "faiss",
    "jinja2",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "pandas",
    "joblib",
    "narwhals",
    "pyarrow",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
    "tagkin.annotator.learning",
    "tagkin.calibration.fitting",
    "tagkin.features.text_encoder",
    "tagkin.lexicons",
    "tagkin.model_selection",
    "tagkin.paper",
    "tagkin.space.regression",
    "torch",
    "urllib.request",
}
NUMBERS = {"numpy", "scipy", "PIL", "lxml"}


def imported(cache, *command: object) -> set[str]:
    """The modules that a command has imported when it ends, in a process of its own."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('IMPORTED', *sys.modules, file=sys.stderr))\n"
        "from tagkin.cli.app import main\n"
        "main()"
    )
    environment = os.environ | {"TAGKIN_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, command)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("IMPORTED ")[2].split())


@pytest.mark.parametrize("command", [(), ("suggest",), ("tags",), ("train",)], ids=" ".join)
def test_help_imports_no_numbers(tmp_path, command):
    modules = imported(tmp_path, *command, "--help")
    assert not modules & (
        HEAVY | NUMBERS | {"rich.console", "tagkin.catalogue", "tagkin.annotator"}
    )


@pytest.mark.parametrize(
    "command", [("suggest",), ("explain", "PHOTO"), ("find", "--like", "PHOTO")]
)
def test_a_collection_is_asked_without_what_learns(command, world, catalogue):
    photograph = sorted(world.photos.glob("*.jpg"))[0]
    command = [photograph if word == "PHOTO" else word for word in command]
    # twice, because the cache does not trust files that were just written
    call(world.cache, *command, "--catalogue", catalogue)
    modules = imported(world.cache, *command, "--catalogue", catalogue)
    # suggest may update the model after answers
    allowed = {"scipy.linalg", "tagkin.model_selection"} if command[0] == "suggest" else set()
    assert modules & HEAVY <= allowed
    own = {name for name in modules if name.startswith("tagkin.cli.commands.")}
    assert own == {f"tagkin.cli.commands.{command[0]}"}


def test_a_network_is_opened_where_a_photograph_is_new(world, catalogue, tmp_path):
    photograph = sorted(world.photos.glob("*.jpg"))[0]
    modules = imported(tmp_path, "find", "--like", photograph, "--catalogue", catalogue)
    assert modules & HEAVY == {"onnxruntime"}


def test_a_fit_in_the_background_imports_no_web_server():
    code = "import sys, tagkin.server.background; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"fastapi", "uvicorn"} & set(modules)
    assert "tagkin.catalogue" in modules
