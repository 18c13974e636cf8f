"""The annotator: it learns from photographs and their tags, and suggests tags for others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tagkin import storage
from tagkin.annotator.feature_annotator import FeatureAnnotator
from tagkin.annotator.grouping import series_text
from tagkin.annotator.label_input import Labels, read_labels
from tagkin.annotator.learned_attributes import LearnedAttributes
from tagkin.annotator.photographs import (
    Photographs,
    TagLists,
    paths_of,
    said_before,
    subset,
    tag_rows,
    tags_now,
)
from tagkin.annotator.relocation import Relocation
from tagkin.annotator.suggesting import rule_for
from tagkin.annotator.suggestions import (
    Finding,
    Kin,
    LabelSuggestion,
    PhotoSuggestions,
    Similar,
    Support,
    TagSuggestion,
)
from tagkin.annotator.unseen_tags import UnseenTags, Wanted
from tagkin.arrays import check_integer
from tagkin.arrays.records import LEFT_OUT, storable
from tagkin.errors import InvalidInput, StorageError
from tagkin.features import Extraction, FeatureCache
from tagkin.images import Failure
from tagkin.labels import Vocabulary
from tagkin.progress import Progress, silent
from tagkin.space import SemanticSpace
from tagkin.transfer import NeighborTransfer
from tagkin.wording import count, denoising_text

if TYPE_CHECKING:
    from tagkin.annotator.quality import Quality

__all__ = ["Annotator"]

_KIN = 5


@storable
class Annotator(LearnedAttributes, Relocation, UnseenTags):
    """Learns from tagged photographs and suggests tags for others, with the kin that carry them.

    It computes features of photographs, once, and hands them to a `FeatureAnnotator`.

    Parameters
    ----------
    backbone : str, default "efficientnet-lite0-whole"
        What makes features of photographs: a name or a path, see `tagkin.features.get_backbone`.
    space : SemanticSpace, optional
        Space to use instead of the default.
    method : method by neighbours, optional
        One of `tagkin.transfer` with evidence. Default: `KinReadout`, tuned on held-out ones.
    denoise : bool, default True
        Whether tags may be smoothed over photographs that look alike, where that helps.
    min_count : int, default 2
        Tags on fewer photographs are not learned.
    tune : bool, default False
        Choose κ and the settings of the method by cross-validation, which takes some minutes.
    cache : FeatureCache or bool, default True
        Where features are kept: True for the user's cache folder, False for nowhere.
    random_state : int, default 0
        Seed of everything that is drawn.
    aliases : mapping of str to str, optional
        Tag → the tag that is learned in its place; `read_synonyms` reads them from a file.
    merge_plurals : bool, default False
        Whether ``dog`` and ``dogs`` are one tag if both occur: see `Vocabulary`.
    exclude : sequence of str, optional
        Tags that are not learned.
    leaf_only : bool, default False
        Whether ``animal|dog`` is suggested as ``dog``, where no other tag ends in it.
    names : bool, default True
        Whether the names of tags count beside the photographs, as much as held-out photographs
        confirm them; see `tagkin.tag_meanings`. It needs WordNet, or a backbone with a text
        encoder. If both are missing, names do not count, and `names_note_` says why.

    Attributes
    ----------
    files_, digests_ : arrays of N str
        The photographs learned from, each once, relative to their common folder with / between
        folders, and the digests of their contents.
    paths_ : sequence of N str
        Where these photographs are on this machine. Not stored in a model: see `relocate`.
    tags_from_ : str
        `Collection.tags_from`.
    estimator_ : FeatureAnnotator
        What was learned from the features. The attributes from `tags_` to `blend_` are its own.
    tags_ : list of N lists of str
        The photographs' tags, as they were given.
    vocabulary_ : Vocabulary
    space_ : SemanticSpace
    method_ : method by neighbours
    calibrator_ : LabelCalibrator
    held_out_ : CSR array of shape (N, D)
        Probabilities of tags, by models that did not see the photograph.
    blend_ : float
        How much the tags were denoised for the space.
    names_note_ : str
        Why the names of tags do not count; empty if they do.
    failures_ : list of Failure
        Photographs that could not be read by the last `fit` or `add`.
    """

    estimator_: FeatureAnnotator
    fingerprint_: str
    names_note_: str
    tags_from_: str
    failures_: Annotated[Sequence[Failure], LEFT_OUT] = ()

    def __init__(
        self,
        backbone: str = "efficientnet-lite0-whole",
        space: SemanticSpace | None = None,
        method: NeighborTransfer | None = None,
        denoise: bool = True,
        min_count: int = 2,
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
        self.denoise = denoise
        self.min_count = min_count
        self.tune = tune
        self.cache = cache
        self.random_state = random_state
        self.aliases = aliases
        self.merge_plurals = merge_plurals
        self.exclude = exclude
        self.leaf_only = leaf_only
        self.names = names

    # --- learning ------------------------------------------------------------------------

    def fit(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        accepted: TagLists | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from photographs and their tags.

        Parameters
        ----------
        photographs : list of paths, `Collection` or `Extraction`
        tags : list of lists of str
            The tags of each photograph, None or an empty list where there are none; a collection
            has its own.
        rejected : list of lists of str, optional
            The tags that a person rejected for each photograph. They are never suggested for it
            again, and are a surer no than a tag that nobody mentioned: people forget tags. One
            that a photograph carries all the same counts for nothing.
        accepted : list of lists of str, optional
            Which of each photograph's tags a person accepted when they were suggested. With those
            rejected they tell how often a tag that nobody mentioned is right after all: a tag
            that was mostly rejected is suggested with less confidence from then on.
        progress : function of (what, done, all), optional

        Notes
        -----
        Of photographs without tags what was rejected for them counts, and nothing else; those that
        cannot be read are in `failures_`. Those of the same content are one, with the tags of all
        of them. A series (shots of one camera within minutes, near-duplicates) is held out as a
        whole while confidences are learned; see `tagkin.annotator.series`. If it fails, what was
        learned before stays.
        """
        step, estimator = progress or silent, self._estimator()
        estimator.check_parameters()
        seen, rows, (no, yes) = self._tagged(photographs, tags, step, rejected, accepted)
        estimator.prior, note = self._usable_prior(seen.features)
        labels, groups = self._labels_and_series(rows, seen, step)
        alone = self._rejected_alone(photographs, tags, rejected, seen, step)
        decided: dict[str, Any] = {"rejected": no, "rejected_alone": alone, "accepted": yes}
        decided |= {"said": said_before(rows, yes)}
        estimator.fit(seen.features, labels, groups=groups, progress=step, **decided)
        self.estimator_, self.fingerprint_ = estimator, self._backbone().fingerprint
        self.names_note_ = note
        self._keep(seen, seen.files, seen.digests)
        self.tags_from_ = getattr(photographs, "tags_from", "given")
        return self

    def add(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Add tagged photographs, perhaps with new tags, and learn nothing anew.

        They are kin from now on, and new tags can be suggested at once. Photographs that are
        known (by content) get these tags instead of those that they had, and are where they were
        found now. Confidences of new tags are learned from the photographs that bring them, beside
        known ones where these are few; `audit` says nothing of new photographs until the next
        `fit`. `rejected` is as in `fit`; without it, known photographs keep theirs.
        """
        self._check_fitted()
        self._check_backbone()
        seen, rows, (refused,) = self._tagged(photographs, tags, progress or silent, rejected)
        known = self._rows_of(seen.digests)
        self.estimator_.partial_fit(seen.features, rows, known=known, rejected=refused)
        fresh = np.flatnonzero(known < 0)
        paths = [*self.paths_, *(seen.files[i] for i in fresh)]
        for i in np.flatnonzero(known >= 0):
            paths[known[i]] = seen.files[i]
        digests = [*self.digests_, *(seen.digests[i] for i in fresh)]
        self._keep(seen, paths, digests)
        return self

    def _keep(self, seen: Extraction, paths: Sequence[str], digests: Sequence[str]) -> None:
        self.digests_ = np.array(digests, dtype=object)
        self._place(paths)
        self.failures_ = seen.failures

    def _estimator(self) -> FeatureAnnotator:
        """What learns from the features, not fitted yet."""
        vocabulary = Vocabulary(
            self.min_count,
            self.aliases,
            separator="|",
            merge_levels=True,
            merge_plurals=self.merge_plurals,
            exclude=self.exclude,
            leaf_only=self.leaf_only,
        )
        return FeatureAnnotator(
            self.space, self.method, self.denoise, self.tune, vocabulary, self.random_state
        )

    def _labels_and_series(self, rows: list[list[str]], seen: Extraction, step: Progress) -> Any:
        """The tags that can be learned, and the series that are held out as a whole."""
        from tagkin.annotator.problem import n_folds  # what suggests does not need it
        from tagkin.annotator.series import find_series

        step("Finding series", 0, 1)
        series = find_series(seen.files, seen.features, n_folds(len(seen.files)))
        return self.learnable(rows), series

    def learnable(self, rows: list[list[str]]) -> Labels:
        """What can be learned of photographs' tags, refused in words of photographs and tags."""
        from tagkin.annotator.problem import check_enough

        labels = read_labels(rows, len(rows), clone(self._estimator().vocabulary))
        check_enough(labels.Y, "tagged photographs", "tag")
        return labels

    # --- suggesting ----------------------------------------------------------------------

    def suggest(
        self,
        photographs: Photographs,
        *,
        n: int | None = None,
        threshold: float | None = None,
        precision: float | None = None,
        n_kin: int = _KIN,
        rejected: TagLists | None = None,
        vocabulary: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> list[PhotoSuggestions]:
        """Tags for photographs, with confidences and the kin that support them.

        Parameters
        ----------
        photographs : path, list of paths, `Collection` or what `look` returned
        n : int, optional
            At most so many tags per photograph; alone, so many whatever their confidence.
        threshold : float, optional
            The confidence that a tag must reach; .5 unless something else is asked for.
        precision : float, optional
            The share of suggestions that are to be right, tag by tag and all of a tag together:
            single ones may be less sure. A tag that cannot reach it is not suggested.
        n_kin : int, default 5
            Kin to name for each suggestion, at most.
        rejected : list of lists of str, optional
            Tags that a person rejected for each photograph, besides those that `fit` was told of:
            they are not suggested.
        vocabulary : sequence of str, optional
            Further tags, which no photograph carries yet: they are suggested by their names, as
            `suggest_by_name` does. An annotator that has learned nothing suggests these alone.

        Returns
        -------
        suggestions : one `PhotoSuggestions` for each photograph that could be read
            A photograph that was learned from does not support its own tags, and the tags that it
            carries are not suggested again.
        """
        if vocabulary is not None and not hasattr(self, "estimator_"):
            return self.suggest_by_name(
                photographs,
                vocabulary,
                n=n,
                threshold=threshold,
                precision=precision,
                progress=progress,
            )
        self._check_fitted()
        self._check_backbone()
        check_integer("n_kin", n_kin, 0)
        rule_for(self.calibrator_, n, threshold, precision)  # refused before looking, not after
        words = self._unseen(vocabulary)
        carried = tags_now(photographs, self.tags_from_)
        seen = self._met(self._readable(photographs, progress))
        known = self._rows_of(seen.digests)
        own = [
            carried(file, self.tags_[k] if k >= 0 else ())
            for file, k in zip(seen.files, known, strict=True)
        ]
        files = paths_of(photographs)
        refused = dict(zip(files, tag_rows(files, rejected or [None] * len(files)), strict=True))
        found = self.estimator_.suggest(
            seen.features,
            n,
            threshold,
            precision,
            known=known,
            carried=own,
            rejected=[refused[file] for file in seen.files],
            n_support=n_kin,
        )
        suggested = [
            PhotoSuggestions(file, tuple(self._shown(one) for one in of_photo), tuple(tags))
            for file, of_photo, tags in zip(seen.files, found, own, strict=True)
        ]
        return self._with_words(suggested, seen, words, Wanted(n, threshold, precision))

    def similar(self, photographs: Photographs, n: int = 10) -> list[list[Similar]]:
        """The tagged photographs nearest to each photograph in the space, itself left out."""
        self._check_fitted()
        self._check_backbone()
        check_integer("n", n, 1)
        seen = self._met(self._readable(photographs, None))
        found = self.estimator_.similar(seen.features, n, known=self._rows_of(seen.digests))
        return [
            [
                Similar(self.paths_[one.image], one.similarity, tuple(self.tags_[one.image]))
                for one in near
            ]
            for near in found
        ]

    def _shown(self, one: LabelSuggestion) -> TagSuggestion:
        kin = self._kin(one.support)
        return TagSuggestion(one.name, one.confidence, kin, one.name_share, one.readout_share)

    def _kin(self, support: Sequence[Support]) -> tuple[Kin, ...]:
        """Images that support a tag, as the photographs that they are."""
        return tuple(
            Kin(self.paths_[one.image], one.share, tuple(self.tags_[one.image])) for one in support
        )

    # --- judging -------------------------------------------------------------------------

    def audit(
        self, n: int | None = None, *, kind: str | None = None, n_kin: int = _KIN
    ) -> list[Finding]:
        """Tags that seem wrong or missing on the photographs learned from, the surest first.

        They are judged by models that had not seen the photograph. The confidence is the
        probability that a person who looks finds the tag wrong, or missing: it rests on how many
        tags are wrong and missing in this collection, as far as `errors_` could tell.

        Parameters
        ----------
        n : int, optional
            So many findings at most; without it, all with a confidence of .5 and more.
        kind : "wrong" or "missing", optional
        """
        self._check_fitted()
        check_integer("n_kin", n_kin, 0)
        return [
            Finding(
                self.paths_[one.image], one.name, one.kind, one.confidence, self._kin(one.support)
            )
            for one in self.estimator_.audit(n, kind, n_support=n_kin)
        ]

    def cross_validate(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        rejected: TagLists | None = None,
        progress: Progress | None = None,
    ) -> Quality:
        """How good the suggestions of an annotator like this one are, on these photographs.

        Each fold is held out in turn; nothing of this annotator changes. Nothing is tuned, either.
        """
        step, estimator = progress or silent, self._estimator()
        seen, rows, (refused,) = self._tagged(photographs, tags, step, rejected)
        estimator.prior = self._usable_prior(seen.features)[0]
        labels, groups = self._labels_and_series(rows, seen, step)
        return estimator.cross_validate(
            seen.features, labels, groups=groups, rejected=refused, progress=step
        )

    def evaluate(
        self,
        photographs: Photographs,
        tags: TagLists | None = None,
        *,
        progress: Progress | None = None,
    ) -> Quality:
        """How good this annotator's suggestions are for tagged photographs that it has not seen.

        Photographs that it was learned from are left out. Neighbours in visual feature space are
        measured beside it where the photographs that it was learned from are still there: with
        fewer of them the baseline would be weaker than it is.
        """
        self._check_fitted()
        self._check_backbone()
        seen, rows, _ = self._tagged(photographs, tags, progress or silent)
        fresh = np.flatnonzero(self._rows_of(self._met(seen).digests) < 0)
        if not len(fresh):
            raise InvalidInput(
                f"The model was learned from all of these {len(seen.files)} photographs. Pass "
                "others, or cross-validate."
            )
        seen, rows = subset(seen, fresh), [rows[i] for i in fresh]
        from tagkin.annotator.baseline import visual_scores

        known = self.look(list(self.paths_), progress=progress)
        known_rows = self._rows_of(known.digests)
        baseline = visual_scores(self.method_, known_rows, known.features, seen.features)
        return self.estimator_.evaluate(seen.features, rows, visual_scores=baseline)

    # --- keeping -------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write it to a folder, all of it or nothing; `tagkin.load` reads it again.

        `tagkin.storage.check_folder` says before the training what would be refused here.
        """
        self._check_fitted()
        return storage.save(self, folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Annotator:
        """Read an annotator that `save` wrote."""
        found = storage.load(folder)
        if not isinstance(found, Annotator):
            raise StorageError(
                f"{folder} holds a {type(found).__name__}, not an Annotator. tagkin.load reads it."
            )
        return found

    def describe(self) -> list[str]:
        """What this annotator is, in a few sentences."""
        self._check_fitted()
        n, n_tags = self.method_.labels_.shape
        learned = f"{count(n, 'tagged photograph')} and {count(n_tags, 'tag')}"
        together = series_text(self.groups_)
        return [
            f"Learned from {learned}. Denoised: {denoising_text(self.blend_)}.",
            *([f"Held out as a whole: {together}."] if together else ()),
            f"Looks at photographs with {self.backbone}.",
            *self.estimator_.describe()[2 if together else 1 :],
        ]

    # --- small things --------------------------------------------------------------------

    def _rows_of(self, digests: Sequence[str]) -> np.ndarray:
        """Which photograph learned from each digest is, or −1."""
        known = self.paths_.numbers
        return np.array([known.get(digest, -1) for digest in digests], dtype=np.int64)

    def _check_fitted(self) -> None:
        if not hasattr(self, "estimator_"):
            raise NotFittedError("This Annotator is not fitted yet. Call fit(photographs, tags).")
