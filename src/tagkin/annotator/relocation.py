"""What an annotator knows of where its photographs are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from tagkin.annotator.locations import Locations, digest_reader, rooted
from tagkin.arrays.records import LEFT_OUT
from tagkin.arrays.rules import FileNames, Text, Texts
from tagkin.features import Extraction, FeatureCache, ReadOnlyCache
from tagkin.progress import Progress

__all__ = ["Relocation"]


class Relocation:
    """The part of an `Annotator` that keeps track of the photographs learned from."""

    files_: Annotated[Any, FileNames("N")]
    digests_: Annotated[Any, Texts("N")]
    root_name_: Annotated[str, Text(r"[^/\\\0]*")] = ""
    paths_: Annotated[Locations, LEFT_OUT]
    cache: Any

    if TYPE_CHECKING:  # of the annotator itself

        def _check_fitted(self) -> None: ...

        def _opened_cache(self) -> AbstractContextManager[FeatureCache | None]: ...

    def relocate(
        self, folder: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> list[str]:
        """Find the photographs learned from again, after they were moved or renamed.

        Under the folder they are looked for by name, and by content where the names differ.
        Where they are is kept in the user's cache (unless `cache` is False), never in the model.

        Returns
        -------
        missing : list of str
            Names, out of `files_`, of the photographs that are nowhere to be found.
        """
        self._check_fitted()
        with self._opened_cache() as cache:
            self.paths_.search(folder, digest_reader(cache), progress)
        self._remember_paths()
        return [str(self.files_[i]) for i in self.paths_.missing()]

    def meet_folder(self, folder: str | os.PathLike[str], *, prefer: bool = False) -> None:
        """Take a folder for that of the photographs learned from, if it is theirs, renamed.

        Nothing happens where they are not in that folder; nor where they are all found already,
        unless with `prefer`, which takes this folder rather than another one with copies.
        """
        self._check_fitted()
        if self.paths_.try_root(folder, digest_reader(None), prefer):
            self._remember_paths()

    def _place(self, paths: Sequence[str]) -> None:
        """Take these for the paths of the photographs; the model gets names relative to a root."""
        root, names = rooted(paths)
        self.files_, self.root_name_ = np.array(names, dtype=object), os.path.basename(root or "")
        remembers = self.cache is not False  # when it was fitted, whatever is stored later
        self.paths_ = Locations(self.files_, self.digests_, root, remembers=remembers)

    def _met(self, seen: Extraction) -> Extraction:
        """What was seen; photographs that were missed may be among it."""
        if self.paths_.meet(seen.files, seen.digests):
            self._remember_paths()
        return seen

    def _remember_paths(self) -> None:
        if self.cache is not False and not isinstance(self.cache, ReadOnlyCache):
            self.paths_.remember()

    def saved_to(self, folder: Path) -> None:
        """Called when the model is in its folder."""
        self._remember_paths()

    def opened_from(self, folder: Path) -> None:
        """Called when the model was read from its folder."""
        self.paths_ = Locations(self.files_, self.digests_)
        self.paths_.find_root(folder, self.root_name_)
