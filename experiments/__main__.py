"""Measure what the documents say: ``python -m experiments NAME [ARGUMENT ...]``.

    run [CONFIG ...]   the paper: experiments 1 to 5 on every dataset that is there, or on some
    ablation           what each step of learning is worth
    audit, audit-small, audit-names   injected errors, found
    confidence         leaks and calibration with many photographs
    loop [SET ...] [--quick]    an evening of answers
    moments            tags that no picture shows, on collections of single people
    names              what names of tags are worth; --alone: without a tagged photograph
    languages          labels in other languages
    recipes            the annotator beside other methods
    trust              percentages with few photographs; --examples: with a few of each tag
    words              the map to words; --learn: learned again and written
    backbones --backbone NAME   a row of docs/models.md
    pages              write the tables of all pages from docs/results
    figures            what takes about two hours on two quiet cores, benchmarks too, and the pages
    take DIR [FOLDER]  results of another machine: a copy of docs/results, or of one folder there

Too long for `figures`, so for a larger machine: run (an hour), recipes flickr8k coco tags, audit,
words, and `python -m benchmarks scale gpu`.

Results go to docs/results with the version, date, machine and seed; `experiments/made.py` says how
pages have them. What was computed before is kept in build/results, so an interrupted run resumes.
Datasets are read from the folder TAGKIN_DATA, or from ../shared/data.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import tagkin
from experiments import made
from experiments.config import CONFIGS, Config, find_config
from experiments.problem import data_folder, is_available
from experiments.store import Missing
from tagkin.errors import TagkinError

KEPT = Path("build/results", made.minor(tagkin.__version__))  # another version computes anew
FIGURES = (
    *(("moments",), ("ablation",), ("audit-small",), ("audit-names",), ("confidence",), ("loop",)),
    *(("names", "photos"), ("names", "--alone"), ("languages",), ("trust",)),
    ("trust", "photos", "flickr8k", "--forgotten", "--sizes", "100", "400"),
    ("trust", "--examples"),
)


def run_paper(arguments: list[str]) -> None:
    """Compute what is missing, and write tables and figures."""
    from experiments.report import write
    from experiments.run import run
    from experiments.study import Study

    parser = argparse.ArgumentParser(prog="python -m experiments run")
    names = ", ".join(sorted(path.stem for path in CONFIGS.glob("*.toml")))
    wanted = f"{names}, or the path of another; default: all whose dataset is there"
    parser.add_argument("config", nargs="*", help=wanted)
    parser.add_argument("--results", type=Path, default=KEPT, help="what is kept to resume")
    report = made.RESULTS / "paper"
    parser.add_argument("--report", type=Path, default=report, help="tables and figures")
    options = parser.parse_args(arguments)
    for config in _configs(options.config):
        study = Study(config, options.results)
        run(study)
        write(study, options.report)
        print(f"Tables and figures of {config.name}: {options.report}")


def _configs(names: list[str]) -> list[Config]:
    if names:
        return [find_config(name) for name in names]
    every = [find_config(path.stem) for path in sorted(CONFIGS.glob("*.toml"))]
    available = [c for c in every if c.dataset != "synthetic" and is_available(c.dataset)]
    if not available:
        raise SystemExit(
            "No dataset was found. Set TAGKIN_DATA to the folder that has them, or try "
            "python -m experiments run smoke --report build/report."
        )
    return available


def run_loop(arguments: list[str]) -> None:
    """Measure evenings; quick ones are no result of the documentation."""
    from experiments import loop

    quick = "--quick" in arguments
    target = Path("build/report") if quick else made.RESULTS
    names = [name for name in arguments if not name.startswith("-")]
    loop.run(KEPT, target, names, quick=quick)


def run_trust(arguments: list[str]) -> None:
    """Measure percentages with few photographs, or with a few examples of each tag."""
    name = "examples" if "--examples" in arguments else "trust"
    import_module(f"experiments.{name}").main(arguments)


def run_backbones(arguments: list[str]) -> None:
    """Print a row for each backbone."""
    from experiments import backbones

    parser = argparse.ArgumentParser(prog="python -m experiments backbones")
    parser.add_argument("--backbone", action="append", default=[], help="repeatable")
    parser.add_argument("--folder", type=Path, help="your own photographs")
    parser.add_argument("--results", type=Path, default=KEPT)
    options = parser.parse_args(arguments)
    backbones.run(options.backbone, options.folder, options.results / "cache")


def write_pages(arguments: list[str]) -> None:
    """Write the tables of all pages."""
    for path in made.write_pages():
        print(path.relative_to(made.DOCS.parent))


def take_results(arguments: list[str]) -> None:
    """Take results that another machine made since."""
    parser = argparse.ArgumentParser(prog="python -m experiments take")
    parser.add_argument("source", type=Path, help="a folder with made.json")
    parser.add_argument("folder", nargs="?", default=".", help="in docs/results: paper, benchmarks")
    options = parser.parse_args(arguments)
    print(*made.take(options.source, made.RESULTS / options.folder), sep="\n")
    made.write_pages()


def measure_figures(arguments: list[str]) -> None:
    """Run every command that fits, each in its own process; say at the end which failed."""
    commands = [("experiments", *words) for words in FIGURES]
    failed = []
    for command in [*commands, ("benchmarks",), ("experiments", "pages")]:
        print(f"python -m {' '.join(command)}", flush=True)
        if subprocess.run([sys.executable, "-m", *command]).returncode:
            failed.append(" ".join(command))
    if failed:
        raise SystemExit(f"Failed: {', '.join(failed)}.")


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "run": run_paper,
    "ablation": lambda _: import_module("experiments.ablation").run(made.RESULTS),
    "audit": lambda _: import_module("experiments.audit").run(KEPT, made.RESULTS),
    "audit-small": lambda _: import_module("experiments.audit_small").run(KEPT, made.RESULTS),
    "audit-names": lambda _: import_module("experiments.audit_names").run(made.RESULTS),
    "confidence": lambda parts: import_module("experiments.confidence").measure(
        parts, made.RESULTS, KEPT / "cache"
    ),
    "loop": run_loop,
    "moments": lambda arguments: import_module("experiments.moments").main(arguments),
    "names": lambda arguments: import_module("experiments.names").main(arguments),
    "languages": lambda arguments: import_module("experiments.languages").main(arguments),
    "recipes": lambda arguments: import_module("experiments.recipes").main(arguments),
    "trust": run_trust,
    "words": lambda arguments: import_module("experiments.words").run(
        KEPT, made.RESULTS, learns="--learn" in arguments
    ),
    "backbones": run_backbones,
    "pages": write_pages,
    "figures": measure_figures,
    "take": take_results,
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    name, *others = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(__doc__)
        return
    if name not in COMMANDS:
        raise SystemExit(f"No experiment is called {name!r}. There are {', '.join(COMMANDS)}.")
    try:
        COMMANDS[name](others)
    except (TagkinError, Missing) as error:
        raise SystemExit(str(error)) from None
    except FileNotFoundError as error:
        if not Path(str(error.filename)).is_relative_to(data_folder()):
            raise
        raise SystemExit(
            f"{error.filename} is missing. Set TAGKIN_DATA to the folder that has the data."
        ) from None


if __name__ == "__main__":
    main()
