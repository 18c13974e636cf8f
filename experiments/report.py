"""The report of a run: tables as CSV and figures as SVG."""

from __future__ import annotations

from pathlib import Path

from experiments import made
from experiments.figures import all_figures
from experiments.study import Study
from experiments.tables import all_tables

__all__ = ["write"]


def write(study: Study, folder: Path) -> None:
    """Write the tables and figures for which a study has stored results; compute nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    before, study.store.read_only = study.store.read_only, True
    try:
        for table in all_tables(study):
            path = folder / f"{table.name}.csv"
            made.write_table(path, table.columns, table.rows, study.config.seed)
        for name, figure in all_figures(study):
            path = folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            made.note(path, study.config.seed)
    finally:
        study.store.read_only = before
