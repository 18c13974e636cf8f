"""The annotator: it learns from photographs and their tags, and suggests tags for others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from tagkin import storage
from tagkin.annotator import name_suggestions as by_name
from tagkin.annotator.label_input import KnownLabels
from tagkin.annotator.model import Model, describe_photographs
from tagkin.annotator.photograph_input import KnownTags, Photographs, TagLists, take_photographs
from tagkin.annotator.photograph_reader import PhotographReader
from tagkin.annotator.suggesting import find_similar, make_images, make_rule, suggest_labels
from tagkin.annotator.suggestions import (
    Finding,
    LearnedPhotographs,
    PhotoSuggestions,
    Similar,
    join_root,
    split_root,
)
from tagkin.arrays import check_integer
from tagkin.arrays.checks import not_fitted
from tagkin.collection.times import Moments
from tagkin.errors import InvalidInput
from tagkin.features import Extraction, FeatureCache, extract
from tagkin.images import Failure
from tagkin.labels import Vocabulary
from tagkin.progress import Progress, silent
from tagkin.records.forms import LEFT_OUT, storable
from tagkin.records.parameters import HasParameters
from tagkin.records.rules import FileNames, Texts
from tagkin.tag_meanings import NamePrior
from tagkin.transfer.occasions import Asked

if TYPE_CHECKING:  # imported when needed, because suggesting uses neither
    from tagkin.annotator.feature_annotator import FeatureAnnotator
    from tagkin.annotator.quality import Quality
    from tagkin.space import SemanticSpace
    from tagkin.transfer import NeighborTransfer
else:  # storage resolves the annotations of parameters, without these imports
    SemanticSpace = NeighborTransfer = object

__all__ = ["Annotator"]


@storable
class Annotator(HasParameters):
    """Learns from tagged photographs and suggests tags for others, with their kin.

    Kin are the tagged photographs that support a suggestion. A backbone turns photographs into
    features; a `FeatureAnnotator` learns from them. Suggesting needs only the record `model_`.

    Parameters
    ----------
    backbone : str, default "efficientnet-lite0-whole"
        Turns photographs into features: a name or a path, see `tagkin.features.get_backbone`.
    space : SemanticSpace, optional
        Default: ``SemanticSpace(2.0)``. A space of your own has κ = 0.5 unless you pass another.
    method : method by neighbours, optional
        Method of `tagkin.transfer` with evidence. Default: `KinReadout`.
    random_state : int or None, default 0
        Random seed.
    min_count : int, default 1
        Ignore tags on fewer than `min_count` photographs.
    cache : FeatureCache or bool, default True
        Where features are kept: True for the user's cache folder, False for nowhere.
    names : bool, default True
        Whether the names of tags count, with weights learned on held-out photographs. This needs
        the default backbone, or one with a text encoder; see `tagkin.tag_meanings` and
        `names_note_`.

    Attributes
    ----------
    model_ : Model
        The record of everything learned.
    tags_, vocabulary_, space_, method_, calibration_ : fields of the model
    files_, digests_ : arrays of N str
        The photographs learned from, each once, relative to their common folder, and digests.
    root_ : str
        That folder. A model does not store it: after `tagkin.load` it is empty until `relocate`.
    paths_ : list of N str
        Their paths; names without the folder if it is not known.
    names_note_ : str
        Why the names of tags do not count; empty if they do.
    failures_ : list of Failure
        Photographs that the last `fit` or `partial_fit` could not read.

    Examples
    --------
    >>> from tagkin import Annotator
    >>> Annotator(min_count=5).set_params(names=False)
    Annotator(min_count=5, names=False)
    """

    model_: Model
    files_: Annotated[np.ndarray, FileNames("N")]
    digests_: Annotated[np.ndarray, Texts("N")]
    root_: Annotated[str, LEFT_OUT] = ""
    fingerprint_: str
    names_note_: str
    failures_: Annotated[Sequence[Failure], LEFT_OUT] = ()
    _learned: Annotated[LearnedPhotographs | None, LEFT_OUT] = None
    _opened: Annotated[PhotographReader | None, LEFT_OUT] = None

    tags_ = property(attrgetter("model_.tags"))
    vocabulary_ = property(attrgetter("model_.vocabulary"))
    space_ = property(attrgetter("model_.space"))
    method_ = property(attrgetter("model_.method"))
    calibration_ = property(attrgetter("model_.calibration"))

    def __init__(
        self,
        backbone: str = "efficientnet-lite0-whole",
        space: SemanticSpace | None = None,
        *,
        method: NeighborTransfer | None = None,
        min_count: int = 1,
        cache: FeatureCache | bool = True,
        random_state: int | None = 0,
        names: bool = True,
    ):
        self.backbone = backbone
        self.space = space
        self.method = method
        self.min_count = min_count
        self.cache = cache
        self.random_state = random_state
        self.names = names

    def read_features(
        self,
        photographs: Photographs,
        *,
        progress: Progress | None = None,
        extract: Callable[..., Extraction] = extract,
    ) -> Extraction:
        """Read features of photographs, from the cache if they are there.

        Pass the result to other methods instead of paths. Its `failures` could not be read.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        progress : function of (what, done, all), optional
        extract : function, or `tagkin.distributed.extract`, which works on a cluster
        """
        return self.reader.read(photographs, progress, extract)

    @property
    def reader(self) -> PhotographReader:
        """Reader of photographs, which keeps its backbone open until `backbone` changes."""
        if self._opened is None or self._opened.name != self.backbone:
            self._opened = PhotographReader(self.backbone)
        self._opened.cache = self.cache
        return self._opened

    def fit(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        accepted: TagLists | None = None,
        complete: Sequence[bool] | None = None,
        moments: Moments | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from photographs and their tags. If it fails, the old model stays.

        Copies of a photograph count once, with the tags of all of them. While confidences are
        learned, photographs are held out with their event or trip, or a series; see
        `tagkin.model_selection.kinds` and `tagkin.annotator.series`.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        tags : list of lists of str
            The tags of each photograph, None for no tags. A collection has its own.
        rejected, accepted : lists of lists of str, optional
            The tags that a person rejected for each photograph, and accepted as suggestions.
        complete : sequence of bool, optional
            Which photographs have all of their tags. Default: those with tags.
        moments : Moments, optional
            When and where they were taken, and their folders. Default: as their files say.
        progress : function of (what, done, all), optional
        """
        estimator, step, reader = self._new_estimator(), progress or silent, self.reader
        given = {"rejected": rejected, "accepted": accepted}
        known = KnownTags.of(photographs, tags, complete=complete, moments=moments, **given)
        extraction, known = reader.read_tagged(photographs, known, step)
        estimator.prior, note = reader.find_prior(extraction.features, self.names)
        taken, groups = reader.find_together(extraction, known, step)
        estimator.fit(
            extraction.features,
            known.present,
            groups=groups,
            rejected=known.rejected,
            accepted=known.accepted,
            complete=known.has_all,
            progress=step,
            **taken._asdict(),
        )
        self.model_, self.failures_ = estimator.model_, extraction.failures
        self.fingerprint_, self.names_note_ = reader.backbone.fingerprint, note
        self.set_photographs(extraction.files, extraction.digests)
        return self

    def partial_fit(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        complete: Sequence[bool] | None = None,
        moments: Moments | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Add photographs, and change the tags of known ones, without a new fit.

        New photographs with tags are kin from now on. Photographs that are known (by content) get
        these tags instead of their old ones, and these paths. Tags that were not learned wait for
        the next `fit`, and so does an audit of new photographs.

        Parameters
        ----------
        photographs, tags, complete, moments, progress
            As in `fit`.
        rejected : list of lists of str, optional
            Tags that a person rejected. Default: known photographs keep theirs.
        """
        from tagkin.annotator.extending import AddedImages, extend

        given = KnownTags.of(
            photographs, tags, rejected=rejected, complete=complete, moments=moments
        )
        extraction, tagged = self._prepare().read_once(photographs, given, progress)
        known = self.learned.find(extraction.digests)
        taken = self._asked(extraction, tagged).occasions
        added = AddedImages(
            extraction.features, tagged.tags, known, tagged.rejected, tagged.has_all, taken
        )
        self.model_, self.failures_ = extend(self.model_, added), extraction.failures
        paths, digests, files = list(self.paths_), list(self.digests_), extraction.files
        has_names_only = not all(map(os.path.isabs, paths))  # loaded, and not relocated
        if has_names_only:
            _, files = split_root(files)
        for file, digest, i in zip(files, extraction.digests, known, strict=True):
            if i < 0:
                paths.append(file)
                digests.append(digest)
            elif not has_names_only:
                paths[i] = file
        if has_names_only:
            self._name_photographs("", paths, digests)
        else:
            self.set_photographs(paths, digests)
        return self

    def set_photographs(self, paths: Sequence[str], digests: Sequence[str] | np.ndarray) -> None:
        """Say which photographs were learned from, in the model's order.

        Parameters
        ----------
        paths, digests : sequences of N str
        """
        self._name_photographs(*split_root(paths), digests)

    def _name_photographs(
        self, root: str, names: Sequence[str], digests: Sequence[str] | np.ndarray
    ) -> None:
        self.root_, self._learned = root, None
        self.files_, self.digests_ = np.array(names, object), np.array(digests, object)

    @property
    def learned(self) -> LearnedPhotographs:
        """The photographs learned from."""
        if self._learned is None:
            self._check_fitted()
            paths = [join_root(self.root_, name) for name in self.files_]
            self._learned = LearnedPhotographs(paths, self.tags_, self.digests_)
        return self._learned

    @property
    def paths_(self) -> Sequence[str]:
        """The paths of the photographs learned from."""
        return self.learned.paths

    def _new_estimator(self) -> FeatureAnnotator:
        from tagkin.annotator.feature_annotator import FeatureAnnotator

        estimator = FeatureAnnotator(self.space, self.method)
        estimator.set_params(vocabulary=self.new_vocabulary(), random_state=self.random_state)
        estimator.check_parameters()
        return estimator

    def new_vocabulary(self) -> Vocabulary:
        """Return the vocabulary that `fit` learns, before it has read any tags."""
        return Vocabulary(min_count=self.min_count, separator="|", merge_levels=True)

    def suggest(
        self,
        photographs: Photographs,
        *,
        n: int | None = None,
        threshold: float | None = None,
        precision: float | None = None,
        n_kin: int = 5,
        rejected: TagLists | None = None,
        present: TagLists | None = None,
        complete: Sequence[bool] | None = None,
        offered: TagLists | None = None,
        moments: Moments | None = None,
        vocabulary: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> list[PhotoSuggestions]:
        """Suggest tags for photographs, with confidences and the kin that support them.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        n, threshold, precision : optional
            As in `FeatureAnnotator.suggest`.
        n_kin : int, default 5
            How many kin to name for each suggestion.
        rejected, present : lists of lists of str, optional
            Tags that a person rejected, and tags of each photograph: neither are suggested.
        complete : sequence of bool, optional
            Which photographs a person has tagged completely.
        offered : sequence of lists of str, optional
            Tags that an earlier model suggested and nobody has answered.
        moments : Moments, optional
            As in `fit`.
        vocabulary : sequence of str, optional
            Further tags, to suggest by their names alone. An annotator that is not fitted suggests
            only these. `tagkin.tag_meanings.common_tags` has some.
        progress : function of (what, done, all), optional
        """
        words, wanted = by_name.check_words(vocabulary), (n, threshold, precision)
        alone = make_rule(None, *wanted)
        if words and not hasattr(self, "model_"):
            return by_name.suggest_words(self.reader, photographs, words, alone, progress, present)
        reader, model = self._prepare(), self.model_
        rule = make_rule(model, *wanted)  # before photographs are read
        check_integer("n_kin", n_kin, 0)
        given = {"rejected": rejected, "offered": offered}
        known = KnownTags.of(photographs, present, complete=complete, moments=moments, **given)
        extraction, known = reader.read_known(photographs, known, progress)
        asked = self._asked(extraction, known)
        tags = known.present or [list(self.tags_[k]) if k >= 0 else [] for k in asked.known]
        labels = KnownLabels(tags, known.rejected, known.complete, known.offered)
        images = make_images(model, extraction.features, asked, labels)
        suggested = suggest_labels(model, images, rule, n_kin, self._prior)
        photos = list(map(self.learned.suggestions, extraction.files, suggested, tags))
        if not (words := by_name.new_words(words, self.vocabulary_)):
            return photos
        return by_name.add_words(photos, extraction.features, words, alone, reader.require_prior())

    def _asked(self, extraction: Extraction, known: KnownTags) -> Asked:
        """Return when and where photographs were taken, if the model knows that of its own."""
        numbers = self.learned.find(extraction.digests)
        if self.model_.occasions is None:
            return Asked.new(None, len(numbers))._replace(known=numbers)
        moments = self.reader.find_moments(extraction, known, self.root_)
        return Asked.read(*moments, len(numbers))._replace(known=numbers)

    def predict_proba(
        self, photographs: Photographs, *, moments: Moments | None = None
    ) -> np.ndarray:
        """Return the probability of every tag for every readable photograph, shape (n, D).

        The photographs count as untagged.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        moments : Moments, optional
            As in `fit`.
        """
        model, known = self.model_, KnownTags.of(photographs, moments=moments)
        extraction, known = self._prepare().read_known(photographs, known, None)
        asked = self._asked(extraction, known)._replace(known=np.full(len(extraction.files), -1))
        scores = model.score(extraction.features, self._prior, asked)
        return model.probabilities(scores, kinds=model.kinds(asked, len(scores)))

    def similar(self, photographs: Photographs, n: int = 10) -> list[list[Similar]]:
        """Return the n tagged photographs nearest to each photograph, without itself.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        n : int, default 10
            How many photographs to return for each.
        """
        check_integer("n", n, 1)
        extraction = self._prepare().read_any(photographs, None)
        known = self.learned.find(extraction.digests)
        nearest = find_similar(self.model_, extraction.features, known, n)
        return [self.learned.similar(images) for images in nearest]

    def audit(
        self, n: int | None = None, *, kind: str | None = None, n_kin: int = 5
    ) -> list[Finding]:
        """Find tags that seem wrong or missing on the photographs learned from.

        Models that had not seen the photograph judge its tags.

        Parameters
        ----------
        n, kind, n_kin : optional
            As in `FeatureAnnotator.audit`.
        """
        from tagkin.annotator.audit import find_errors

        self._check_fitted()
        return list(map(self.learned.finding, find_errors(self.model_, n, kind, n_kin)))

    def cross_validate(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        moments: Moments | None = None,
        progress: Progress | None = None,
    ) -> Quality:
        """Measure how good suggestions are, by holding out each fold in turn.

        Untagged photographs are not used. This annotator does not change.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        tags, rejected : lists of lists of str, optional
            The tags of each photograph (a collection has its own), and those a person rejected.
        moments, progress : optional
            As in `fit`.
        """
        estimator, step, reader = self._new_estimator(), progress or silent, self.reader
        known = KnownTags.of(photographs, tags, rejected=rejected, moments=moments)
        extraction, known = reader.read_tagged(photographs, known, step)
        rows = np.flatnonzero(known.has_all)
        extraction, known = take_photographs(extraction, rows), known.take(rows)
        estimator.prior, _ = reader.find_prior(extraction.features, self.names)
        taken, groups = reader.find_together(extraction, known, step)
        return estimator.cross_validate(
            extraction.features,
            known.present,
            groups=groups,
            rejected=known.rejected,
            progress=step,
            **taken._asdict(),
        )

    def relocate(self, folder: str | os.PathLike[str]) -> None:
        """Look for the photographs learned from in another folder, by their names `files_`."""
        self._check_fitted()
        self.root_, self._learned = os.path.abspath(folder), None

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the annotator to a folder, completely or not at all; `tagkin.load` reads it.

        Parameters
        ----------
        folder : path
        overwrite : bool, default False
        """
        self._check_fitted()
        return storage.save(self, folder, overwrite=overwrite)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this annotator."""
        self._check_fitted()
        return describe_photographs(self.model_, self.backbone)

    def check_stored(self) -> None:
        """Raise `InvalidInput` if a stored model has no tags."""
        if self.tags_ is None or self.vocabulary_ is None:
            raise InvalidInput("it has no tags")

    def _prepare(self) -> PhotographReader:
        """Check that the model can be used, and return the reader of photographs."""
        self._check_fitted()
        self.reader.check_fingerprint(self.fingerprint_)
        return self.reader

    @property
    def _prior(self) -> NamePrior | None:
        """The prior of tag names, if they count; a model is stored without it."""
        return None if self.model_.names is None else self.reader.prior

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise not_fitted("This Annotator is not fitted yet. Call fit(photographs, tags).")
