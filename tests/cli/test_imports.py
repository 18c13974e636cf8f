"""What short commands do not import: that is most of what they would take."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.fork_server import Start

# What takes long to import, and is for learning, measuring or drawing.
HEAVY = {
    "jinja2",
    "matplotlib",
    "numpy.f2py",
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
    "sklearn.model_selection",
    "sklearn.pipeline",
    "sklearn.svm",
    "tagkin.annotator.learning",
    "tagkin.denoising",
    "tagkin.model_selection",
    "torch",
    "urllib.request",
}
LIGHTLY = """
from tagkin.light_imports import import_scikit_learn_lightly as lightly
lightly()
import sys, sklearn.base, sklearn.utils.fixes as fixes, sklearn.utils.validation
"""
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
    found = imported(cache, "model", "suggest", photograph, world.model)
    needed = set() if looked_at else {"onnx", "onnxruntime"}
    assert found & HEAVY == needed
    assert "sklearn.base" in found


def test_a_fit_in_the_background_imports_no_web_server():
    code = "import sys, tagkin.server.fitting; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"fastapi", "uvicorn"} & set(found)
    assert "tagkin.catalogue" in found


def test_a_fit_in_the_background_imports_scikit_learn_as_commands_do(tmp_path):
    code = (
        "import runpy, sys\n"
        "try:\n"
        "    runpy.run_module('tagkin.server.fitting', run_name='__main__')\n"
        "except SystemExit:\n"  # there is no such catalogue
        "    import sklearn.base\n"
        "    print('IMPORTED', *sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "none.sqlite"), "map"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}  # it ends when its input does
    with subprocess.Popen(command, text=True, **pipes) as process:
        said = process.stdout.read()
    found = set(said.rpartition("IMPORTED ")[2].split())
    assert "sklearn.base" in found
    assert not found & {"joblib", "pandas", "scipy.stats"}


@pytest.fixture
def printed(forked: Start) -> Callable[[str], list[str]]:
    """The words that a program prints which has imported scikit-learn as commands do."""

    def words(code: str) -> list[str]:
        process = forked(["-c", LIGHTLY + code], stdout=subprocess.PIPE, text=True)
        said, _ = process.communicate()
        assert process.returncode == 0
        return said.split()

    return words


def test_what_scikit_learn_goes_without_is_there_when_it_is_asked_for(printed):
    code = (
        "late = {'scipy.special', 'scipy.stats', 'scipy.linalg', 'numpy.f2py', 'numpy.testing'}\n"
        "assert not {'joblib', 'narwhals', *late} & set(sys.modules)\n"
        "import numpy, scipy\n"
        "print(fixes._mode([1, 1, 2]).count, scipy.stats.norm.mean(), end=' ')\n"
        "print(scipy.special.expit(0.0), end=' ')\n"
        "print(numpy.testing.__name__, numpy.f2py.__name__, sklearn.__spec__.loader is not None)"
    )
    assert printed(code) == ["[2]", "0.0", "0.5", "numpy.testing", "numpy.f2py", "True"]


def test_what_scikit_learn_took_hold_of_works(printed):
    """Functions of modules that were not there, and classes that are built on theirs."""
    code = (
        "import numpy as np, scipy.sparse, sklearn.utils.parallel, sklearn.utils.sparsefuncs\n"
        "print(fixes._sparse_linalg_cg(np.eye(2), np.ones(2))[0].sum(), end=' ')\n"
        "print(fixes.laplacian(np.ones((2, 2))).tolist()[0][0], end=' ')\n"
        "some = scipy.sparse.csr_array(np.eye(2))\n"
        "less = sklearn.utils.sparsefuncs._implicit_column_offset(some, np.ones(2))\n"
        "print((less @ np.ones(2)).tolist()[0], end=' ')\n"
        "print(fixes._get_threadpool_controller() is not None, end=' ')\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]\n"
        "print(*LogisticRegression().fit(X, y).predict(X), end=' ')\n"
        "print(len(sklearn.utils.parallel.Parallel(1)([])), scipy.linalg.det(np.eye(2)))"
    )
    assert printed(code) == ["2.0", "1.0", "-1.0", "True", *"0011", "0", "1.0"]


def test_data_frames_are_still_known(printed):
    pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    code = (
        "import pandas\n"
        "frame = pandas.DataFrame({'a': [1.0, 2.0]})\n"
        "print(*sklearn.utils.validation._get_feature_names(frame), end=' ')\n"
        "print(sklearn.utils.validation.check_array(frame).sum())"
    )
    assert printed(code) == ["a", "3.0"]
