"""Compute missing results, with a progress bar."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from tqdm.auto import tqdm

from experiments import expert, photos, scaling, tags
from experiments.study import Step, Study

__all__ = ["all_steps", "run"]


def all_steps(study: Study) -> Iterator[Step]:
    """Every step for one dataset."""
    if study.config.qualitative:
        yield from photos.steps(study)
        return
    yield Step("dataset", 1, study.size)
    yield from expert.steps(study)
    if study.config.stands_for_tags:
        yield from tags.steps(study)
    yield from scaling.steps(study)


def run(study: Study) -> None:
    """Compute and store all results of one dataset; stored results are skipped."""
    steps = list(all_steps(study))
    shape = "{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left"
    total = sum(step.weight for step in steps)
    with tqdm(total=total, bar_format=shape, mininterval=1, delay=1) as bar:
        for number, step in enumerate(steps):
            bar.set_description(f"{study.config.name}: {step.name}", refresh=number > 0)
            key = {"step": f"{number:03d}", "name": step.name}
            before, wall, cpu = study.store.n_written, time.perf_counter(), time.process_time()
            step.run()
            spent = time.perf_counter() - wall, time.process_time() - cpu
            if study.store.n_written > before:
                study.store.put("clock", {"seconds": np.array(spent)}, **key)
            bar.update(step.weight)
