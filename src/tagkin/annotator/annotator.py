"""The annotator: it learns from photographs and their tags, and suggests tags for others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from tagkin import storage
from tagkin.annotator import name_suggestions as by_name
from tagkin.annotator.locations import Locations, digest_reader
from tagkin.annotator.model import Model, describe_photographs
from tagkin.annotator.photograph_input import Photographs, TagLists, read_known
from tagkin.annotator.photograph_reader import PhotographReader
from tagkin.annotator.suggesting import find_similar, make_images, make_rule, suggest_labels
from tagkin.annotator.suggestions import Finding, LearnedPhotographs, PhotoSuggestions, Similar
from tagkin.arrays import check_integer
from tagkin.arrays.checks import not_fitted
from tagkin.errors import InvalidInput
from tagkin.features import Extraction, FeatureCache, extract
from tagkin.images import Failure
from tagkin.labels import Vocabulary
from tagkin.progress import Progress, silent
from tagkin.records.forms import LEFT_OUT, storable
from tagkin.records.parameters import HasParameters
from tagkin.records.rules import FileNames, Text, Texts
from tagkin.tag_meanings import NamePrior

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
    aliases : mapping of str to str, optional
        Tag → the tag to learn instead.
    merge_plurals : bool, default False
        Whether ``dog`` and ``dogs`` are one tag if both occur: see `Vocabulary`.
    exclude : sequence of str, optional
        Tags to ignore.
    leaf_only : bool, default False
        Whether ``animal|dog`` is suggested as ``dog``, if no other tag ends in it.
    names : bool, default True
        Whether the names of tags count, with weights learned on held-out photographs. This needs
        the default backbone, or one with a text encoder; see `tagkin.tag_meanings` and
        `names_note_`.

    Attributes
    ----------
    model_ : Model
        The record of everything learned.
    tags_, vocabulary_, space_, method_, calibrator_ : fields of the model
    files_, digests_ : arrays of N str
        The photographs learned from, each once, relative to their common folder, and digests.
    paths_ : sequence of N str
        Their paths on this machine. A model does not store them: see `relocate`.
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
    root_name_: Annotated[str, Text(r"[^/\\\0]*")] = ""
    fingerprint_: str
    names_note_: str
    failures_: Annotated[Sequence[Failure], LEFT_OUT] = ()
    paths_: Annotated[Locations, LEFT_OUT]
    _opened: Annotated[PhotographReader | None, LEFT_OUT] = None

    tags_ = property(attrgetter("model_.tags"))
    vocabulary_ = property(attrgetter("model_.vocabulary"))
    space_ = property(attrgetter("model_.space"))
    method_ = property(attrgetter("model_.method"))
    calibrator_ = property(attrgetter("model_.calibrator"))

    def __init__(
        self,
        backbone: str = "efficientnet-lite0-whole",
        space: SemanticSpace | None = None,
        *,
        method: NeighborTransfer | None = None,
        min_count: int = 1,
        cache: FeatureCache | bool = True,
        random_state: int | None = 0,
        aliases: Mapping[str, str] | None = None,
        merge_plurals: bool = False,
        exclude: Sequence[str] | None = None,
        leaf_only: bool = False,
        names: bool = True,
    ):
        self.backbone = backbone
        self.space = space
        self.method = method
        self.min_count = min_count
        self.cache = cache
        self.random_state = random_state
        self.aliases = aliases
        self.merge_plurals = merge_plurals
        self.exclude = exclude
        self.leaf_only = leaf_only
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
        extract : function, default tagkin.features.extract
            `tagkin.distributed.extract` works on a cluster.
        """
        return self.reader.read(photographs, progress, extract)

    def _read(
        self, photographs: Photographs, progress: Progress | None = None
    ) -> tuple[Extraction, np.ndarray]:
        """Read photographs, which may tell where moved ones are; find their numbers, or −1 (n,)."""
        extraction = self._prepare().read_any(photographs, progress)
        self.paths_.update_from(extraction.files, extraction.digests, self.cache)
        return extraction, self.paths_.find_numbers(extraction.digests)

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
        progress: Progress | None = None,
    ) -> Self:
        """Learn from photographs and their tags. If it fails, the old model stays.

        Copies of a photograph count once, with the tags of all of them. A series is held out as a
        whole while confidences are learned; see `tagkin.annotator.series`.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        tags : list of lists of str
            The tags of each photograph, None for no tags. A collection has its own.
        rejected, accepted : lists of lists of str, optional
            The tags that a person rejected for each photograph, and accepted as suggestions.
        complete : sequence of bool, optional
            Which photographs have all of their tags. Default: those with tags.
        progress : function of (what, done, all), optional
        """
        estimator, step, reader = self._new_estimator(), progress or silent, self.reader
        tagged = reader.read_tagged(photographs, tags, step, rejected, accepted, complete)
        extraction = tagged.extraction
        estimator.prior, note = reader.find_prior(extraction.features, self.names)
        self.model_ = tagged.learn(estimator, step)
        self.fingerprint_, self.names_note_ = reader.backbone.fingerprint, note
        return self._keep(extraction, extraction.files, extraction.digests)

    def partial_fit(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        complete: Sequence[bool] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Add tagged photographs, perhaps with new tags, without a new fit.

        They are kin from now on, and new tags can be suggested at once. Photographs that are known
        (by content) get these tags instead of their old ones, and these paths. `audit` does not
        report on new photographs until the next `fit`.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        tags : list of lists of str
            The tags of each photograph, None for no tags. A collection has its own.
        rejected : list of lists of str, optional
            Tags that a person rejected. Default: known photographs keep theirs.
        complete : sequence of bool, optional
            Which photographs have all of their tags. Default: those with tags.
        progress : function of (what, done, all), optional
        """
        from tagkin.annotator.extending import AddedImages, extend

        reader, step = self._prepare(), progress or silent
        tagged = reader.read_tagged(photographs, tags, step, rejected, complete=complete)
        extraction = tagged.extraction
        known = self.paths_.find_numbers(extraction.digests)
        X, rows, no = extraction.features, tagged.tags, tagged.rejected
        added = AddedImages(X, rows, known, no, tagged.complete)
        self.model_ = extend(self.model_, added, self._prior)
        return self._keep(extraction, *self.paths_.merge(extraction.files, extraction.digests))

    def _keep(self, extraction: Extraction, paths: Sequence[str], digests: Sequence[str]) -> Self:
        """Keep the photographs learned from; a model stores names relative to their folder."""
        self.paths_ = Locations.of(paths, digests, remembers=self.cache is not False)
        self.files_, self.digests_ = self.paths_.names, self.paths_.digests
        self.root_name_ = os.path.basename(self.paths_.root or "")
        self.failures_ = extraction.failures
        return self

    def _new_estimator(self) -> FeatureAnnotator:
        from tagkin.annotator.feature_annotator import FeatureAnnotator

        estimator = FeatureAnnotator(self.space, self.method)
        estimator.set_params(vocabulary=self.new_vocabulary(), random_state=self.random_state)
        estimator.check_parameters()
        return estimator

    def new_vocabulary(self) -> Vocabulary:
        """Return the vocabulary that `fit` learns, before it has read any tags."""
        names = ("min_count", "aliases", "merge_plurals", "exclude", "leaf_only")
        options = {name: getattr(self, name) for name in names}
        return Vocabulary(separator="|", merge_levels=True, **options)

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
        vocabulary: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> list[PhotoSuggestions]:
        """Suggest tags for photographs, with confidences and the kin that support them.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        n : int, optional
            At most this many tags of each photograph.
        threshold : float, optional
            Least confidence. Default: .5, unless `n` or `precision` is passed.
        precision : float, optional
            Suggest as many tags as possible with this share of all suggestions right.
        n_kin : int, default 5
            How many kin to name for each suggestion.
        rejected, present : lists of lists of str, optional
            Tags that a person rejected for each photograph, and tags that it has. Neither are
            suggested. Default of `present`: those of the `Collection`.
        complete : sequence of bool, optional
            Which photographs a person has tagged completely: there, an absent tag is less likely.
        offered : sequence of lists of str, optional
            Tags that an earlier model suggested and nobody has answered. They are suggested as
            long as their confidence is at least .01, whatever the other options ask for.
        vocabulary : sequence of str, optional
            Further tags, to suggest by their names alone, without kin. An annotator that is not
            fitted suggests only these. `tagkin.tag_meanings.common_tags` has some.
        progress : function of (what, done, all), optional

        Returns
        -------
        suggestions : one PhotoSuggestions for each photograph that could be read
        """
        words, asked = by_name.check_words(vocabulary), (n, threshold, precision)
        alone = make_rule(None, *asked)
        if words and not hasattr(self, "model_"):
            return by_name.suggest_words(self.reader, photographs, words, alone, progress, present)
        reader, model = self._prepare(), self.model_
        rule = make_rule(model.calibrator, *asked)  # before photographs are read
        check_integer("n_kin", n_kin, 0)
        known_of = read_known(photographs, present, rejected, complete, offered)
        extraction, known = self._read(photographs, progress)
        learned = [self.tags_[k] if k >= 0 else () for k in known]
        tags, labels = known_of(extraction.files, learned)
        images = make_images(model, extraction.features, known, labels)
        suggested = suggest_labels(model, images, rule, n_kin, self._prior)
        photos = list(map(self._learned.suggestions, extraction.files, suggested, tags))
        if not (words := by_name.new_words(words, self.vocabulary_)):
            return photos
        return by_name.add_words(photos, extraction.features, words, alone, reader.require_prior())

    def predict_proba(self, photographs: Photographs) -> np.ndarray:
        """Return the probability of every tag for every readable photograph, shape (n, D).

        The photographs count as untagged.
        """
        features = self._prepare().read_any(photographs, None).features
        return self.model_.probabilities(self.model_.score(features, self._prior))

    def similar(self, photographs: Photographs, n: int = 10) -> list[list[Similar]]:
        """Return the n tagged photographs nearest to each photograph, without itself.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        n : int, default 10
            How many photographs to return for each.
        """
        check_integer("n", n, 1)
        extraction, known = self._read(photographs)
        nearest = find_similar(self.model_, extraction.features, known, n)
        return [self._learned.similar(images) for images in nearest]

    def audit(
        self, n: int | None = None, *, kind: str | None = None, n_kin: int = 5
    ) -> list[Finding]:
        """Find tags that seem wrong or missing on the photographs learned from.

        Models that had not seen the photograph judge its tags; see `tagkin.audit_labels`.

        Parameters
        ----------
        n : int, optional
            Most findings, most confident first. Default: all with a confidence of .5 and more.
        kind : "wrong" or "missing", default both
        n_kin : int, default 5
            How many kin to name for each finding.
        """
        from tagkin.annotator.audit import find_errors

        self._check_fitted()
        return list(map(self._learned.finding, find_errors(self.model_, n, kind, n_kin)))

    def cross_validate(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        progress: Progress | None = None,
    ) -> Quality:
        """Measure how good suggestions are, by holding out each fold in turn.

        Untagged photographs are not used. This annotator does not change.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        tags, rejected : lists of lists of str, optional
            The tags of each photograph (a collection has its own), and those a person rejected.
        progress : function of (what, done, all), optional
        """
        estimator, step, reader = self._new_estimator(), progress or silent, self.reader
        tagged = reader.read_tagged(photographs, tags, step, rejected)
        estimator.prior, _ = reader.find_prior(tagged.extraction.features, self.names)
        return tagged.cross_validate(estimator, step)

    def evaluate(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        progress: Progress | None = None,
    ) -> Quality:
        """Measure how good suggestions are for photographs that this annotator has not seen.

        The baseline is measured, too, if the photographs learned from still exist.

        Parameters
        ----------
        photographs : path, list of paths, Collection or Extraction
        tags : list of lists of str
            The tags of each photograph. A collection has its own.
        progress : function of (what, done, all), optional
        """
        from tagkin.annotator.quality import measure_scores, score_visually

        reader, paths = self._prepare(), self.paths_
        tagged = reader.read_tagged(photographs, tags, progress or silent)
        files, digests = tagged.extraction.files, tagged.extraction.digests
        paths.update_from(files, digests, self.cache)
        tagged = tagged.take(np.flatnonzero(paths.find_numbers(digests) < 0))
        if not tagged.tags:
            raise InvalidInput("The model was learned from all of these photographs. Pass others.")
        old, new = reader.read(list(paths), progress), tagged.extraction.features
        known = paths.find_numbers(old.digests)
        visual = score_visually(self.method, self.method_.labels, known, old.features, new)
        scores, words = self.model_.score(new, self._prior), self.vocabulary_
        truth = words.transform(tagged.tags)
        return measure_scores(truth, scores, visual, self.calibrator_, words.names_)

    def relocate(self, folder: str | os.PathLike[str]) -> list[str]:
        """Find the photographs learned from in a folder, after they were moved or renamed.

        It looks for names, then for content, and returns the names (as in `files_`) of photographs
        that were not found. The user's cache remembers paths, unless `cache` is False.
        """
        self._check_fitted()
        with self.reader.open_cache() as cache:
            return self.paths_.search(folder, digest_reader(cache), self.cache)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the annotator to a folder, completely or not at all; `tagkin.load` reads it.

        Parameters
        ----------
        folder : path
        overwrite : bool, default False
            Whether to replace an existing folder.
        """
        self._check_fitted()
        return storage.save(self, folder, overwrite=overwrite)

    def remember_paths(self, folder: Path) -> None:
        """Remember the paths after the model was saved."""
        self.paths_.remember(self.cache)

    def find_photographs(self, folder: Path) -> None:
        """Find the photographs after the model was loaded."""
        self.paths_ = Locations(self.files_, self.digests_)
        self.paths_.find_root(folder, self.root_name_)

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
    def _learned(self) -> LearnedPhotographs:
        return LearnedPhotographs(self.paths_, self.tags_)

    @property
    def _prior(self) -> NamePrior | None:
        """The prior of tag names, if they count; a model is stored without it."""
        return None if self.model_.names is None else self.reader.prior

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise not_fitted("This Annotator is not fitted yet. Call fit(photographs, tags).")
