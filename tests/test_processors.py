"""The runs under other processors' kernels name what there is."""

import os
import platform
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from tests.processors import NUMBERS, kernels_of, settings


def test_the_tests_of_numbers_exist():
    assert all((Path(__file__).parent / name).exists() for name in NUMBERS)


@pytest.mark.parametrize(
    ("machine", "cores"),
    [
        ("x86_64", {"Haswell", "SkylakeX", "Zen", None}),
        ("AMD64", {"Haswell", "SkylakeX", "Zen", None}),
        ("aarch64", {"NEOVERSEN1", "ARMV8", None}),
        ("arm64", {"NEOVERSEN1", "ARMV8", None}),
        ("riscv64", {None}),
    ],
)
def test_core_types_are_those_of_the_architecture(machine, cores):
    known = settings(machine)
    assert {setting.core for setting in known} == cores
    assert {setting.n_threads for setting in known} == {1, 2}
    assert {setting.vectors for setting in known} == {True, False}


def test_the_machines_own_kernels_run():
    own = settings(platform.machine())[0]
    assert str(own) == "own kernels, 1 BLAS thread"
    assert kernels_of(own) is not None


@pytest.mark.skipif(
    "PYTEST_XDIST_WORKER" not in os.environ,
    reason="the tests run in one process, without pytest-xdist",
)
def test_processes_side_by_side_have_as_many_threads_as_was_said():
    """One, unless somebody set another number: two each would be four for two cores."""
    numbers = {int(os.environ[f"{name}_NUM_THREADS"]) for name in ("OMP", "OPENBLAS")}
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    assert {library["num_threads"] for library in blas} <= numbers
