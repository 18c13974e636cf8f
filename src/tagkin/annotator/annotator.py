"""The annotator: it learns from photographs and their tags, and suggests tags for others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from tagkin import storage
from tagkin.annotator import name_suggestions as by_name
from tagkin.annotator import suggesting
from tagkin.annotator.locations import Locations, digest_reader
from tagkin.annotator.model import Model, describe_photographs, summarize
from tagkin.annotator.photograph_input import Photographs, TagLists, current_tags, select_known
from tagkin.annotator.photograph_reader import PhotographReader
from tagkin.annotator.suggestions import Finding, LearnedPhotographs, PhotoSuggestions, Similar
from tagkin.arrays import check_features, check_integer
from tagkin.arrays.checks import not_fitted
from tagkin.errors import InvalidInput, StorageError
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

__all__ = ["Annotator"]

_VOCABULARY = ("min_count", "aliases", "merge_plurals", "exclude", "leaf_only")
_ESTIMATOR = ("space", "method", "tune", "random_state")


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
        Space to use instead of the default.
    method : method by neighbours, optional
        Method of `tagkin.transfer` with evidence. Default: `KinReadout`.
    tune : bool, default False
        Choose κ and the settings of the method by cross-validation, which takes some minutes.
    random_state : int or None, default 0
        Random seed.
    min_count : int, default 1
        Ignore tags on fewer than `min_count` photographs.
    cache : FeatureCache or bool, default True
        Where features are kept: True for the user's cache folder, False for nowhere.
    aliases : mapping of str to str, optional
        Tag → the tag to learn instead; `read_synonyms` reads them from a file.
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
    tags_, vocabulary_, space_, method_, calibrator_
        Fields of the model.
    files_, digests_ : arrays of N str
        The photographs learned from, each once, relative to their common folder with / between
        folders, and the digests of their contents.
    paths_ : sequence of N str
        Their paths on this machine. A model does not store them: see `relocate`.
    tags_from_ : str
        Where their tags came from, as in `Collection.tags_from`.
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
    files_: Annotated[Any, FileNames("N")]
    digests_: Annotated[Any, Texts("N")]
    root_name_: Annotated[str, Text(r"[^/\\\0]*")] = ""
    fingerprint_: str
    names_note_: str
    tags_from_: str
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
        space: Any = None,
        *,
        method: Any = None,
        min_count: int = 1,
        tune: bool = False,
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
        self.tune = tune
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

        Pass the result to other methods instead of paths. Its `failures` are unreadable
        photographs. `extract` may be `tagkin.distributed.extract`, which works on a cluster.

        Parameters
        ----------
        photographs : path, paths, Collection or Extraction
            The photographs, or what `read_features` returned.
        progress : callable, optional
            Called with what is done, and how far it is.
        extract : callable, optional
            How to read features; `tagkin.distributed.extract` works on a cluster.
        """
        return self._reader.read(photographs, progress, extract)

    def _read(self, photographs: Photographs, progress: Progress | None) -> Extraction:
        """Read photographs for a fitted model; they may tell where moved photographs are."""
        extraction = self._prepare().read_any(photographs, progress)
        self.paths_.update_from(extraction.files, extraction.digests, self.cache)
        return extraction

    @property
    def _reader(self) -> PhotographReader:
        """The reader of photographs; it keeps its backbone open until `backbone` changes."""
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
        photographs : list of paths, `Collection` or `Extraction`
        tags : list of lists of str
            The tags of each photograph, None for no tags. A collection has its own.
        rejected, accepted : lists of lists of str, optional
            The tags that a person rejected for each photograph, and accepted as suggestions.
        complete : sequence of bool, optional
            Which photographs have all of their tags. Default: those with tags.
        progress : function of (what, done, all), optional
        """
        estimator, step, reader = self._new_estimator(), progress or silent, self._reader
        estimator.check_parameters()
        tagged = reader.read_tagged(photographs, tags, step, rejected, accepted, complete)
        extraction = tagged.extraction
        estimator.prior, note = self._find_prior(extraction.features)
        estimator.fit(
            extraction.features,
            tagged.read_labels(self._new_vocabulary()),
            groups=tagged.find_series(step),
            rejected=tagged.rejected,
            accepted=tagged.accepted,
            complete=tagged.complete,
            progress=step,
        )
        self.model_, self.fingerprint_ = estimator.model_, reader.backbone.fingerprint
        self.names_note_, self.tags_from_ = note, getattr(photographs, "tags_from", "given")
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
        report on new photographs until the next `fit`. `rejected` and `complete` are as in `fit`;
        by default, known photographs keep their rejected tags.

        Parameters
        ----------
        photographs : path, paths, Collection or Extraction
            The photographs, or what `read_features` returned.
        tags : sequence of lists of str, optional
            Tags of each photograph. Default: those of the `Collection`.
        rejected : sequence of lists of str, optional
            Tags that somebody rejected for each photograph.
        complete : sequence of bool, optional
            Whether the other tags of a photograph are known to be wrong. Default: all.
        progress : callable, optional
            Called with what is done, and how far it is.
        """
        from tagkin.annotator.extending import AddedImages, extend

        reader, step = self._prepare(), progress or silent
        tagged = reader.read_tagged(photographs, tags, step, rejected, complete=complete)
        extraction = tagged.extraction
        known = self.paths_.find_numbers(extraction.digests)
        X, no = extraction.features, tagged.rejected
        added = AddedImages(X, tagged.tags, known, no, tagged.complete)
        self.model_ = extend(self.model_, added, self._prior)
        return self._keep(extraction, *self.paths_.merge(extraction.files, extraction.digests))

    def clear_tags(self, digests: Sequence[str]) -> None:
        """Make known photographs, by the digests of their contents, kin without tags."""
        from tagkin.annotator.extending import remove_labels

        self.model_ = remove_labels(self.model_, self.paths_.find_numbers(digests))

    def _keep(self, extraction: Extraction, paths: Sequence[str], digests: Sequence[str]) -> Self:
        """Keep the photographs learned from; a model stores names relative to their folder."""
        remembers = self.cache is not False  # decided by the fit, whatever is set later
        self.paths_ = Locations.of(paths, digests, remembers)
        self.files_, self.digests_ = self.paths_.names, self.paths_.digests
        self.root_name_ = os.path.basename(self.paths_.root or "")
        self.failures_ = extraction.failures
        return self

    def _new_estimator(self) -> FeatureAnnotator:
        from tagkin.annotator.feature_annotator import FeatureAnnotator

        shared = {name: getattr(self, name) for name in _ESTIMATOR}
        return FeatureAnnotator(vocabulary=self._new_vocabulary(), **shared)

    def _new_vocabulary(self) -> Vocabulary:
        options = {name: getattr(self, name) for name in _VOCABULARY}
        return Vocabulary(separator="|", merge_levels=True, **options)

    def _find_prior(self, features: np.ndarray) -> tuple[NamePrior | None, str]:
        """Return the prior of tag names, or None and the reason."""
        if not self.names:
            return None, "They were not asked for (names=False)."
        return self._reader.find_prior(features)

    def fit_vocabulary(self, tags: TagLists) -> Vocabulary:
        """Return the vocabulary that `fit` would learn from these tags; learn nothing."""
        from tagkin.annotator.problem_input import read_tags

        vocabulary = self._new_vocabulary()
        read_tags([list(row or ()) for row in tags], vocabulary)
        return vocabulary

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
        photographs : path, list of paths, `Collection` or `Extraction`
        n : int, optional
            At most this many tags of each photograph.
        threshold : float, optional
            Least confidence. Default: .5, unless `n` or `precision` is passed.
        precision : float, optional
            Suggest as many tags as possible with this share of all suggestions right.
        n_kin : int, default 5
            How many kin to name for each suggestion.
        rejected : sequence of lists of str, optional
            Tags that somebody rejected for each photograph. They are not suggested.
        present : sequence of lists of str, optional
            Tags that the photographs already have. They are not suggested. Default: those of the
            `Collection`.
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
        suggestions : one `PhotoSuggestions` for each photograph that could be read
            The tags of a photograph are not suggested again.
        """
        asked: dict[str, Any] = {"n": n, "threshold": threshold, "precision": precision}
        words, rule = by_name.check_words(vocabulary), suggesting.make_rule(None, **asked)
        if words and not hasattr(self, "model_"):
            return by_name.suggest_words(self._reader, photographs, words, rule, progress, present)
        reader = self._prepare()
        select = suggesting.make_rule(self.calibrator_, **asked)  # before photographs are read
        check_integer("n_kin", n_kin, 0)
        tags_now = current_tags(photographs, self.tags_from_, present)
        extraction = self._read(photographs, progress)
        known = self.paths_.find_numbers(extraction.digests)
        learned = LearnedPhotographs(self.paths_, self.tags_)
        tags = [
            tags_now(file, learned.tags[k] if k >= 0 else ())
            for file, k in zip(extraction.files, known, strict=True)
        ]
        options = select_known(photographs, extraction.files, rejected, complete, offered)
        labels = suggesting.KnownLabels(present=tags, **options)
        images = suggesting.make_images(self.model_, extraction.features, known, labels)
        suggested = suggesting.suggest_labels(self.model_, images, select, n_kin, self._prior)
        photos = list(map(learned.suggestions, extraction.files, suggested, tags))
        if not (words := by_name.new_words(words, self.vocabulary_)):
            return photos
        return by_name.add_words(photos, extraction.features, words, rule, reader.require_prior())

    def unknown_words(self, vocabulary: Sequence[str]) -> list[str]:
        """Return the words without a known meaning, which cannot be suggested by name."""
        words = by_name.check_words(vocabulary)
        return by_name.unknown_words(words, self._reader.require_prior())

    def predict_proba(
        self, photographs: Photographs, *, progress: Progress | None = None
    ) -> np.ndarray:
        """Return the probability of every tag for every readable photograph, shape (n, D).

        The photographs count as untagged.

        Parameters
        ----------
        photographs : path, paths, Collection or Extraction
            The photographs, or what `read_features` returned.
        progress : callable, optional
            Called with what is done, and how far it is.
        """
        extraction = self._prepare().read_any(photographs, progress)
        return self.model_.probabilities(self.model_.score(extraction.features, self._prior))

    def similar(
        self, photographs: Photographs, n: int = 10, *, progress: Progress | None = None
    ) -> list[list[Similar]]:
        """Return the n tagged photographs nearest to each photograph, without itself.

        Parameters
        ----------
        photographs : path, paths, Collection or Extraction
            The photographs, or what `read_features` returned.
        n : int, default 10
            How many photographs to return for each.
        progress : callable, optional
            Called with what is done, and how far it is.
        """
        check_integer("n", n, 1)
        extraction = self._read(photographs, progress)
        known = self.paths_.find_numbers(extraction.digests)
        embeddings = self.model_.embed(extraction.features)
        nearest = suggesting.find_similar(self.model_.method, embeddings, known, n)
        learned = LearnedPhotographs(self.paths_, self.tags_)
        return [learned.similar(images) for images in nearest]

    def audit(
        self, n: int | None = None, *, kind: str | None = None, n_kin: int = 5
    ) -> list[Finding]:
        """Find tags that seem wrong or missing, as `FeatureAnnotator.audit` does.

        Parameters
        ----------
        n : int, optional
            At most this many findings. Default: all.
        kind : {"wrong", "missing"}, optional
            Only findings of this kind.
        n_kin : int, default 5
            How many kin to name for each finding.
        """
        from tagkin.annotator.audit import find_errors

        self._check_fitted()
        findings = find_errors(self.model_, n, kind, n_kin)
        learned = LearnedPhotographs(self.paths_, self.tags_)
        return [learned.finding(finding) for finding in findings]

    def cross_validate(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        progress: Progress | None = None,
    ) -> Quality:
        """Measure how good suggestions are, as `FeatureAnnotator.cross_validate` does.

        Parameters
        ----------
        photographs : path, paths, Collection or Extraction
            The photographs, or what `read_features` returned.
        tags : sequence of lists of str, optional
            Tags of each photograph. Default: those of the `Collection`.
        rejected : sequence of lists of str, optional
            Tags that somebody rejected for each photograph.
        progress : callable, optional
            Called with what is done, and how far it is.
        """
        from tagkin.annotator.problem_input import read_problem
        from tagkin.annotator.quality import cross_validate
        from tagkin.annotator.recipe import usual_recipe

        step, seed = progress or silent, self.random_state
        recipe = usual_recipe(self.space, self.method, seed)
        tagged = self._reader.read_tagged(photographs, tags, step, rejected).take_complete()
        features, labels = tagged.extraction.features, tagged.read_labels(self._new_vocabulary())
        series, (prior, _) = tagged.find_series(step), self._find_prior(features)
        checked = check_features(features, min_rows=2)
        problem = read_problem(checked, labels, series, tagged.rejected, prior=prior, seed=seed)
        return cross_validate(problem, recipe, step)

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
        photographs : path, paths, Collection or Extraction
            The photographs, or what `read_features` returned.
        tags : sequence of lists of str, optional
            Tags of each photograph. Default: those of the `Collection`.
        progress : callable, optional
            Called with what is done, and how far it is.
        """
        from tagkin.annotator.quality import measure_scores, score_visually

        reader, paths = self._prepare(), self.paths_
        tagged = reader.read_tagged(photographs, tags, progress or silent)
        extraction = tagged.extraction
        paths.update_from(extraction.files, extraction.digests, self.cache)
        new = np.flatnonzero(paths.find_numbers(extraction.digests) < 0)
        if not len(new):
            raise InvalidInput(
                f"The model was learned from all of these {len(tagged.tags)} photographs. Pass "
                "others, or cross-validate."
            )
        learned, features = reader.read(list(paths), progress), extraction.features[new]
        known, method = paths.find_numbers(learned.digests), self._new_estimator().method
        visual = score_visually(method, self.method_, known, learned.features, features)
        scores = self.model_.score(features, self._prior)
        truth = self.vocabulary_.transform([tagged.tags[i] for i in new])
        return measure_scores(truth, scores, visual, self.calibrator_, self.vocabulary_.names_)

    def relocate(
        self, folder: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> list[str]:
        """Find the photographs learned from in a folder, after they were moved or renamed.

        It looks for names, then for content, and returns the names (as in `files_`) of photographs
        that were not found. The user's cache remembers paths, unless `cache` is False.

        Parameters
        ----------
        folder : path
            Where to look for the photographs.
        progress : callable, optional
            Called with what is done, and how far it is.
        """
        self._check_fitted()
        with self._reader.open_cache() as cache:
            self.paths_.search(folder, digest_reader(cache), progress)
        self.paths_.remember(self.cache)
        return [str(self.files_[i]) for i in self.paths_.missing()]

    def adopt_folder(self, folder: str | os.PathLike[str], *, prefer: bool = False) -> None:
        """Use a folder with missing photographs; with `prefer`, instead of one with copies.

        Parameters
        ----------
        folder : path
            Where the photographs are.
        prefer : bool, default False
            Use it instead of a folder with copies.
        """
        self._check_fitted()
        if self.paths_.try_root(folder, digest_reader(None), prefer):
            self.paths_.remember(self.cache)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the annotator to a folder, completely or not at all; `load` reads it.

        Parameters
        ----------
        folder : path
            The folder to write.
        overwrite : bool, default False
            Replace an existing one.
        """
        self._check_fitted()
        return storage.save(self, folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Annotator:
        """Read an annotator that `save` wrote."""
        model = storage.load(folder)
        if not isinstance(model, Annotator):
            raise StorageError(
                f"{folder} holds a {type(model).__name__}, not an Annotator. tagkin.load reads it."
            )
        return model

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

    def summary(self) -> dict[str, Any]:
        """Return numbers and texts that describe this annotator, for JSON."""
        origin = {"backbone": self.backbone, "fingerprint": self.fingerprint_}
        return summarize(self.model_) | origin | {"description": self.describe()}

    def check_stored(self) -> None:
        """Raise `InvalidInput` if a stored model has no tags."""
        if self.tags_ is None or self.vocabulary_ is None:
            raise InvalidInput("it has no tags")

    def _prepare(self) -> PhotographReader:
        """Check that the model can be used, and return the reader of photographs."""
        self._check_fitted()
        self._reader.check_fingerprint(self.fingerprint_)
        return self._reader

    @property
    def _prior(self) -> NamePrior | None:
        """The prior of tag names, if they count; a model is stored without it."""
        return None if self.model_.names is None else self._reader.prior

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise not_fitted("This Annotator is not fitted yet. Call fit(photographs, tags).")
