"""Compute missing results, with a progress bar."""

from __future__ import annotations

from collections.abc import Iterator

from tqdm.auto import tqdm

from experiments import expert, photos, scaling, tags
from experiments.study import Step, Study

__all__ = ["all_steps", "run"]


def all_steps(study: Study) -> Iterator[Step]:
    """Every step for one dataset."""
    if study.config.qualitative:
        yield from photos.steps(study)
        return
    yield Step("dataset", study.size)
    yield from expert.steps(study)
    if study.config.stands_for_tags:
        yield from tags.steps(study)
    yield from scaling.steps(study)


def run(study: Study) -> None:
    """Compute and store all results of one dataset; stored results are skipped."""
    bar = tqdm(list(all_steps(study)), mininterval=1, delay=1)
    for step in bar:
        bar.set_description(f"{study.config.name}: {step.name}")
        step.run()
