"""The report: tables as Markdown and CSV, figures as SVG, and one HTML page with everything."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import tagkin
from experiments import photos
from experiments.figures import all_figures
from experiments.problem import is_available
from experiments.study import Study
from experiments.tables import all_tables
from experiments.templating import render

__all__ = ["machine", "publish", "write_figures", "write_page", "write_tables"]


@contextmanager
def _as_stored(studies: list[Study]) -> Iterator[None]:
    """Compute nothing: the report depends on stored results only."""
    before = [study.store.read_only for study in studies]
    for study in studies:
        study.store.read_only = True
    try:
        yield
    finally:
        for study, state in zip(studies, before, strict=True):
            study.store.read_only = state


def machine() -> str:
    """A description of this machine."""
    names = set()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = {line.split(":")[1].strip() for line in lines if line.startswith("model name")}
    name = ", ".join(sorted(names)) or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores ({name}), {platform.system()}"


def versions() -> str:
    """Versions of the packages that results depend on."""
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"tagkin {tagkin.__version__}, Python {platform.python_version()}, {others}"


def _provenance(studies: list[Study]) -> list[str]:
    names = " ".join(study.config.name for study in studies)
    seeds = ", ".join(sorted({str(study.config.seed) for study in studies}))
    return [
        f"Command: `python -m experiments all {names}`.",
        f"Versions: {versions()}.",
        f"Machine: {machine()}. Seed: {seeds}.",
    ]


def write_tables(studies: list[Study], folder: Path) -> None:
    """Write tables.md, and one CSV per table."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["# Tables and figures", "", *(f"{line}\n" for line in _provenance(studies))]
    with _as_stored(studies):
        for study in studies:
            parts += [f"## {study.config.name}", ""]
            for table in all_tables(study):
                (folder / f"{table.name}.csv").write_text(table.csv())
                parts += [table.markdown(), f"[{table.name}.csv]({table.name}.csv)", ""]
            parts += [f"<!-- figures of {study.config.name} -->", ""]
    (folder / "tables.md").write_text("\n".join(parts).rstrip() + "\n")


def write_figures(studies: list[Study], folder: Path) -> None:
    """Write every figure as SVG, and embed them in tables.md if it exists."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "tables.md"
    text = page.read_text() if page.exists() else ""
    captions: dict[str, dict[str, str]] = {}
    with _as_stored(studies):
        for study in studies:
            lines = []
            for name, caption, figure in all_figures(study):
                captions.setdefault(study.config.name, {})[name] = caption
                path = folder / f"{name}.svg"
                figure.savefig(path, metadata={"Date": None, "Creator": None})
                lines += [f"![{caption}]({path.name})", "", caption, ""]
            text = text.replace(f"<!-- figures of {study.config.name} -->\n", "\n".join(lines))
    (folder / "captions.json").write_text(json.dumps(captions, indent=1, ensure_ascii=False))
    if text:
        page.write_text(text.rstrip() + "\n")


def publish(studies: list[Study], folder: Path) -> None:
    """Write tables as CSV and figures as SVG into a folder that is committed: no photographs."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.csv"), *folder.glob("*.svg")):
        old.unlink()
    write_tables(studies, folder)
    write_figures(studies, folder)
    (folder / "made-with.txt").write_text("\n".join([*_provenance(studies), ""]), encoding="utf-8")
    for name in ("captions.json", "tables.md"):
        (folder / name).unlink()


def write_page(studies: list[Study], folder: Path) -> None:
    """Write index.html, a single file with all tables and figures."""
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "captions.json"
    captions = json.loads(known.read_text()) if known.exists() else {}
    sections, pages = [], []
    with _as_stored(studies):
        for study in studies:
            name = study.config.name
            figures = [
                (_inline(path), caption)
                for figure, caption in captions.get(name, {}).items()
                if (path := folder / f"{figure}.svg").exists()
            ]
            tables = [table.html() for table in all_tables(study)]
            sections.append({"name": name, "tables": tables, "figures": figures})
            if study.config.qualitative and is_available(study.config.dataset):
                pages.append(f"{name}.html")
                photos.page(study, folder / pages[-1])
    page = render(
        "report.html.jinja", provenance=_provenance(studies), sections=sections, pages=pages
    )
    (folder / "index.html").write_text(page, encoding="utf-8")


def _inline(path: Path) -> str:
    """An SVG to go into a page; ids get a prefix so that they stay unique."""
    text = path.read_text()
    text = text[text.index("<svg") :]
    mark = path.stem
    text = re.sub(r'\bid="', f'id="{mark}-', text)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{mark}-", text)
