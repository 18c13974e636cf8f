"""The documentation site builds without a warning, is whole, and fetches nothing."""

import importlib
import os
import re
import subprocess
import sys

import tagkin

from .documents import ROOMS, ROOT
from .rules import obey

# Helpers, and rooms of the application: their docstrings are in the source.
APPLICATION = {"arrays", "catalogue", "cli", "immich", "pages", "records", "server"}


def test_the_site_builds_and_is_whole(tmp_path):
    built(tmp_path)
    every_public_name_is_on_the_page_of_its_room(tmp_path)
    a_page_fetches_nothing_from_elsewhere(tmp_path)


def built(folder):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, f"make docs fails; edit the page that is named:\n{done.stderr}"


def every_public_name_is_on_the_page_of_its_room(site):
    shown = set()
    for page in (site / "reference").glob("*.html"):
        shown |= set(re.findall(r'id="(tagkin\.[\w.]+)"', page.read_text("utf-8")))
    named = {dotted.rpartition(".")[2] for dotted in shown}
    missing = set(tagkin.__all__) - named
    for room in ROOMS - APPLICATION:
        module = importlib.import_module(f"tagkin.{room}")
        names = {
            f"tagkin.{room}.{name}" for name in module.__all__ if callable(getattr(module, name))
        }
        missing |= names - shown
    obey(
        "every public name is on the page of its room",
        missing,
        "name it in docs/reference/ROOM.md, or take it off __all__ of the room",
    )


def a_page_fetches_nothing_from_elsewhere(site):
    fetched = re.compile(r'<(?:script|img|link|iframe)\b[^>]*(?:src|href)="(?:https?:)?//')
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    loading = [page.name for page in pages if fetched.search(page.read_text("utf-8"))]
    for sheet in site.rglob("*.css"):
        if re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text("utf-8")):
            loading.append(sheet.name)
    obey(
        "the documentation fetches nothing from elsewhere",
        loading,
        "edit mkdocs.yml (theme, fonts, scripts), or the page in docs",
    )
