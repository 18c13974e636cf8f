"""What short commands do not import: that is most of what they would take."""

import os
import subprocess
import sys

import pytest

# What takes long to import, and is for learning, measuring or drawing.
HEAVY = {
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
    "tagkin.collection.sidecars",
    "tagkin.collection.tag_files",
    "tagkin.denoising",
    "tagkin.features.text_encoder",
    "tagkin.lexicons",
    "tagkin.model_selection",
    "tagkin.space.regression",
    "tagkin.tag_meanings.weights",
    "tagkin.transfer.likelihood",
    "tagkin.transfer.mixture",
    "torch",
    "urllib.request",
}
NUMBERS = {"numpy", "scipy", "PIL", "lxml"}
# Modules of tagkin that a suggestion for a photograph in the cache may import.
MOST_MODULES = 103


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


@pytest.mark.parametrize("command", [(), ("suggest",), ("model",)], ids=" ".join)
def test_help_imports_no_numbers(tmp_path, command):
    found = imported(tmp_path, *command, "--help")
    assert not found & (HEAVY | NUMBERS | {"rich.console", "tagkin.catalogue", "tagkin.annotator"})


def test_info_imports_no_numbers(world):
    """A model says what it is without its arrays."""
    assert not imported(world.cache, "model", "info", world.model) & (HEAVY | NUMBERS)
    assert not imported(world.cache, "model", "info", world.model, "--json") & (HEAVY | NUMBERS)


@pytest.mark.parametrize("looked_at", [True, False], ids=["cached", "new"])
def test_suggest_imports_what_it_needs(looked_at, world, tmp_path):
    """The network is opened where a photograph was not looked at before, and only there."""
    photograph = sorted(world.photos.glob("*.jpg"))[0]
    cache = world.cache if looked_at else tmp_path
    if looked_at:  # again, because the cache does not trust files that were just written
        imported(cache, "model", "suggest", photograph, world.model)
    found = imported(cache, "model", "suggest", photograph, world.model)
    needed = set() if looked_at else {"onnx", "onnxruntime"}
    assert found & HEAVY == needed
    assert "tagkin.annotator.model" in found
    own = {name for name in found if name.startswith("tagkin.cli.commands.")}
    assert own == {"tagkin.cli.commands.model_suggest"}
    if looked_at:
        assert "tagkin.features.onnx_sessions" not in found
        assert len([name for name in found if name.split(".")[0] == "tagkin"]) <= MOST_MODULES


@pytest.mark.parametrize("command", [("suggest",), ("explain", "PHOTO"), ("similar", "PHOTO")])
def test_a_collection_is_asked_without_scikit_learn(command, world, catalogue):
    photograph = sorted(world.photos.glob("*.jpg"))[0]
    command = [photograph if word == "PHOTO" else word for word in command]
    assert "sklearn" not in imported(world.cache, *command, "--catalogue", catalogue)


def test_a_fit_in_the_background_imports_no_web_server():
    code = "import sys, tagkin.server.background_process; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"fastapi", "uvicorn"} & set(found)
    assert "tagkin.catalogue" in found
