"""Reproduce the paper's experiments.

    python -m experiments run flickr8k coco      # compute and store raw results
    python -m experiments tables                 # Markdown and CSV from stored results
    python -m experiments figures                # SVG from stored results
    python -m experiments all                    # all of it, for every available dataset
    python -m experiments smoke                  # all of it, on a small synthetic dataset
    python -m experiments publish                # tables and figures into docs/results/paper
    python -m experiments confidence             # series, leaks and calibration, into docs/results
    python -m experiments ablation               # what each step is worth: into docs/results
    python -m experiments audit                  # injected errors, found: into docs/results
    python -m experiments loop                   # an evening of answers: into docs/results
    python -m experiments loop --quick           # the same on small collections, into build/report
    python -m experiments words                  # the map to words: learned, measured, written
    python -m experiments backbones --backbone NAME --folder DIR   # a row for docs/results

Results go to build/results and the report to build/report (see --results, --report). Stored
results are not computed again, so an interrupted run resumes where it stopped. Datasets are read
from the folder TAGKIN_DATA, or from ../shared/data. Each page of docs/results names the commands
of its other measurements, such as `python -m experiments.trust`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments import ablation, audit, audit_small, backbone_rows, loop, words
from experiments.confidence import measure
from experiments.config import CONFIGS, Config, find_config
from experiments.problem import is_available
from experiments.report import publish, write_figures, write_page, write_tables
from experiments.run import run
from experiments.store import Missing
from experiments.study import Study

_STUDIED = ("run", "tables", "figures", "all", "smoke", "publish")
RESULTS = Path(__file__).parent.parent / "docs" / "results"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        choices=[
            *_STUDIED,
            *("ablation", "confidence", "audit", "loop", "words", "backbones"),
        ],
    )
    parser.add_argument("config", nargs="*", help="name or path of a config; default: all")
    parser.add_argument("--results", type=Path, default=Path("build/results"))
    parser.add_argument("--report", type=Path, default=Path("build/report"))
    parser.add_argument("--quick", action="store_true", help="small collections (loop)")
    parser.add_argument("--backbone", action="append", default=[], help="repeatable (backbones)")
    parser.add_argument("--folder", type=Path, help="your own photographs (backbones)")
    options = parser.parse_args(arguments)
    if options.what == "ablation":
        ablation.run(RESULTS)
        return
    if options.what == "backbones":
        backbone_rows.run(options.backbone, options.folder, options.results / "cache")
        return
    if options.what == "words":
        words.run(options.results, RESULTS)
        return
    if options.what == "audit":
        audit_small.run(options.results, RESULTS)
        audit.run(options.results, RESULTS)
        return
    if options.what == "loop":
        target = options.report if options.quick else RESULTS
        loop.run(options.results, target, quick=options.quick)
        return
    if options.what == "confidence":
        measure(options.config, RESULTS, options.results / "cache")
        return
    studies = [Study(config, options.results) for config in _configs(options)]
    if options.what in ("run", "all", "smoke"):
        for study in studies:
            run(study)
    if options.what in ("tables", "all", "smoke"):
        write_tables(studies, options.report)
    if options.what in ("figures", "all", "smoke"):
        write_figures(studies, options.report)
    if options.what == "publish":
        publish(studies, RESULTS / "paper")
    elif options.what != "run":
        write_page(studies, options.report)
        print(f"Open {options.report / 'index.html'}")


def _configs(options: argparse.Namespace) -> list[Config]:
    if options.what == "smoke" and not options.config:
        return [find_config("smoke")]
    if options.config:
        return [find_config(name) for name in options.config]
    every = [find_config(path.stem) for path in sorted(CONFIGS.glob("*.toml"))]
    available = [c for c in every if c.dataset != "synthetic" and is_available(c.dataset)]
    if not available:
        raise SystemExit(
            "No dataset was found. Set TAGKIN_DATA to the folder that has them, or try "
            "python -m experiments smoke."
        )
    return available


if __name__ == "__main__":
    try:
        main()
    except Missing as missing:
        raise SystemExit(str(missing)) from None
