"""The documentation site builds without a warning, is whole, and fetches nothing."""

import importlib
import os
import re
import subprocess
import sys

import tagkin

from .documents import ROOMS, ROOT


def test_the_site_builds_and_is_whole(tmp_path):
    built(tmp_path)
    every_public_name_is_on_the_page_of_its_room(tmp_path)
    a_page_fetches_nothing_from_elsewhere(tmp_path)


def built(folder):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def every_public_name_is_on_the_page_of_its_room(site):
    shown = set()
    for page in (site / "reference").glob("*.html"):
        shown |= set(re.findall(r'id="(tagkin\.[\w.]+)"', page.read_text("utf-8")))
    named = {dotted.rpartition(".")[2] for dotted in shown}
    assert set(tagkin.__all__) <= named
    for room in ROOMS - {"arrays", "cli"}:
        module = importlib.import_module(f"tagkin.{room}")
        names = [name for name in module.__all__ if callable(getattr(module, name))]
        assert not [name for name in names if f"tagkin.{room}.{name}" not in shown], room


def a_page_fetches_nothing_from_elsewhere(site):
    fetched = re.compile(r'<(?:script|img|link|iframe)\b[^>]*(?:src|href)="(?:https?:)?//')
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    assert not [page.name for page in pages if fetched.search(page.read_text("utf-8"))]
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text("utf-8")), sheet.name
