"""Every test that SECURITY.md names is there."""

import ast
import re
from pathlib import Path

from tests.rules import obey

ROOT = Path(__file__).parents[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text("utf-8"))


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_is_named_exists():
    assert len(NAMED) > 20
    missing = [
        f"{path}::{name}"
        for path, name in NAMED
        if not (ROOT / path).is_file() or name not in functions_of(ROOT / path)
    ]
    obey("tests that SECURITY.md names exist", missing, "write the test's name in SECURITY.md")


def test_every_line_that_says_cannot_names_a_test():
    lines = (ROOT / "SECURITY.md").read_text("utf-8").splitlines()
    promised = [line for line in lines if line.startswith("| cannot")]
    assert promised
    obey(
        "every promise of SECURITY.md names a test",
        [line for line in promised if "::test_" not in line],
        "name the test in that line of SECURITY.md, and write it if there is none",
    )
