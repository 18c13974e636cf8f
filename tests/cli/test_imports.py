"""What short commands do not import: that is most of what they would take."""

import os
import subprocess
import sys

import pytest

# What takes long to import, and is for learning, measuring or drawing.
HEAVY = {
    "jinja2",
    "matplotlib",
    "numpy.f2py",
    "onnx",
    "onnxruntime",
    "pandas",
    "pyarrow",
    "scipy.interpolate",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.model_selection",
    "sklearn.pipeline",
    "sklearn.svm",
    "tagkin.annotator.learning",
    "tagkin.denoising",
    "tagkin.model_selection",
    "torch",
}
NUMBERS = {"numpy", "scipy", "sklearn", "PIL", "lxml"}


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


def test_help_imports_no_numbers(tmp_path):
    assert not imported(tmp_path, "--help") & (HEAVY | NUMBERS)


def test_info_imports_no_numbers(world):
    """A model says what it is without its arrays."""
    assert not imported(world.cache, "info", world.model) & (HEAVY | NUMBERS)
    assert not imported(world.cache, "info", world.model, "--json") & (HEAVY | NUMBERS)


@pytest.mark.parametrize("looked_at", [True, False], ids=["cached", "new"])
def test_suggest_imports_what_it_needs(looked_at, world, tmp_path):
    """The network is opened where a photograph was not looked at before, and only there."""
    photograph = sorted(world.photos.glob("*.jpg"))[0]
    cache = world.cache if looked_at else tmp_path
    found = imported(cache, "suggest", photograph, "--model", world.model)
    needed = set() if looked_at else {"onnx", "onnxruntime"}
    assert found & HEAVY == needed
    assert "sklearn.base" in found


def test_what_scikit_learn_goes_without_is_there_when_it_is_asked_for():
    code = (
        "from tagkin.cli.scikit_learn import import_scikit_learn_lightly as lightly\n"
        "lightly()\n"
        "import sys, sklearn.base, sklearn.utils.fixes as fixes\n"
        "late = {'scipy.special', 'scipy.stats', 'numpy.f2py', 'numpy.testing'}\n"
        "assert not late & set(sys.modules)\n"
        "import numpy, scipy\n"
        "print(fixes._mode([1, 1, 2]).count, scipy.stats.norm.mean(), end=' ')\n"
        "print(scipy.special.expit(0.0), end=' ')\n"
        "print(numpy.testing.__name__, numpy.f2py.__name__, sklearn.__spec__.loader is not None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[2]", "0.0", "0.5", "numpy.testing", "numpy.f2py", "True"]
