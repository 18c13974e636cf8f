"""Some inputs of every fuzzer, and every input that one of them once failed on."""

import importlib
from pathlib import Path

import pytest

from tests.hardening import fuzz, fuzzers
from tests.hardening.fuzzers import Effort

# As many inputs as a second or less has room for: by number, not by the clock.
N_INPUTS = {
    "catalogue": 40,
    "decoding": 250,
    "keywords": 120,
    "models": 6,
    "sidecars": 60,
    "tag_files": 130,
}
CASES = Path(__file__).parent / "cases"


def cases() -> list[Path]:
    return sorted(p for p in CASES.glob("*/*") if p.suffix != ".txt")


@pytest.mark.parametrize("name", fuzz.names())
def test_some_inputs_of_each(name, tmp_path):
    report = fuzz.run_here(name, Effort(n_inputs=N_INPUTS[name]), 0, tmp_path)
    output = "\n".join(path.read_text() for path in sorted(tmp_path.glob("*.txt")))
    assert not report.failures, output
    assert report.n_clean == report.n_tried >= N_INPUTS[name]


@pytest.mark.parametrize("path", cases(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_failed(path):
    """``cases/NAME/…`` are inputs of the fuzzer NAME, which has a `check` for one input."""
    importlib.import_module(f"{fuzzers.__name__}.{path.parent.name}").check(path.read_bytes())
