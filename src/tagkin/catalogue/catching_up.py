"""Bring a catalogue up to date with its folder: scan it, learn, and suggest in growing steps.

Learning does not wait for the scan, and the first suggestions do not wait for all photographs. The
first model learns from 200 tagged photographs, the next from five times as many, the last from all.
After each model, the same share of all photographs gets suggestions. Every step is in the
catalogue when it ends, and features are in the cache, so an interrupted run continues.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tagkin.catalogue.collection_model import CollectionModel
from tagkin.catalogue.database import Database
from tagkin.catalogue.photographs import Photographs
from tagkin.catalogue.scanner import scan_folder
from tagkin.catalogue.source import Source
from tagkin.catalogue.suggest_run import SuggestOptions, SuggestRun
from tagkin.errors import DamagedModel, InvalidInput, MissingExtra
from tagkin.images import Failure
from tagkin.progress import SCANNING, Progress

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

__all__ = ["catch_up"]

_FIRST, _GROWTH = 200, 5  # tagged photographs of the first model, and the factor to the next
_WORTHWHILE = 1.1  # growth of the tagged photographs that makes a new fit worthwhile
_UNTAGGED = 1000  # photographs without any tag, after which tags are suggested by name
_PAUSE = 0.3  # seconds between two looks at a scan


class _Stopped(Exception):
    """Stops the scan."""


def catch_up(
    database: Database,
    source: Source,
    words: Sequence[str],
    *,
    progress: Progress,
    on_news: Callable[[Sequence[Failure]], None],
) -> bool:
    """Scan, learn and suggest until nothing is left to do; see `Catalogue.catch_up`."""
    is_stopped, has_news = threading.Event(), False

    def scan_step(what: str, done: int, total: int) -> None:
        if is_stopped.is_set():
            raise _Stopped
        if done < total:  # more is done after the last photograph
            progress(SCANNING, done, total)

    with ThreadPoolExecutor(1) as pool:
        scan = pool.submit(scan_folder, database, source, scan_step)
        scan.add_done_callback(lambda _: progress(SCANNING, 1, 1))
        try:
            while True:
                is_scanned = scan.done()  # before the step, which may miss photographs found later
                unread = scan.result().failures if is_scanned else []
                if step := _take_step(database, words, is_scanned, progress):
                    has_news = True
                    on_news(step.failures)
                elif is_scanned:
                    if unread:
                        on_news(unread)
                    return has_news
                else:
                    is_stopped.wait(_PAUSE)
        finally:
            is_stopped.set()


def _take_step(
    database: Database,
    words: Sequence[str],
    is_scanned: bool,
    progress: Progress,
) -> SuggestRun | None:
    """Learn and suggest, or only suggest; return None if there is nothing to do now."""
    from tagkin.annotator import Annotator
    from tagkin.annotator.problem import SIZES

    model = CollectionModel(database)
    n_tagged, n_learned = model.n_tagged(), model.n_learned()
    new = None if n_learned else Annotator()  # later models have the settings of the one before
    has_grown = n_tagged > _WORTHWHILE * n_learned or model.is_partial
    if has_grown and n_tagged >= SIZES.fewest:
        size = max(_FIRST, _GROWTH * n_learned)
        if n_tagged < size and not is_scanned:
            return None
        if n_tagged <= _WORTHWHILE * size:
            return model.refit(new, progress=progress)
        model.train(new or model.unfitted(), n_first=size, progress=progress)
        n_first = size * Photographs(database).count().n_photographs // n_tagged
        return model.suggest_for_review(n_first=n_first, progress=progress)
    needs = model.needs()
    if is_scanned and needs.is_due and not needs.tags:
        return model.refit(Annotator() if needs.model else None, progress=progress)
    if not needs.n_new:
        return None
    if not needs.model:
        try:
            return model.suggest_for_review(progress=progress)
        except DamagedModel:  # or of another version of tagkin
            return model.refit(progress=progress)
    if words and (is_scanned or needs.n_new >= _UNTAGGED):
        return _suggest_by_name(model, Annotator(), words, progress)
    return None


def _suggest_by_name(
    model: CollectionModel, annotator: Annotator, words: Sequence[str], progress: Progress
) -> SuggestRun:
    options, contents = SuggestOptions(vocabulary=words).by_name(), model.without_suggestions()
    try:
        return model.suggest(annotator, options, contents=contents, progress=progress)
    except MissingExtra as error:
        raise InvalidInput(
            f"Too few photographs have tags, and none can be suggested by name: {error}"
        ) from error
