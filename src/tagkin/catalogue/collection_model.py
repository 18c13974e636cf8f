"""The model of a collection: trained from the catalogue, and used to suggest tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tagkin.catalogue.bursts import store_bursts
from tagkin.catalogue.database import HAS_FILE, CataloguePart, Run
from tagkin.catalogue.decision_records import IS_ANSWER
from tagkin.catalogue.doubts import Doubts
from tagkin.catalogue.edits import confirm_edits
from tagkin.catalogue.moment_index import MomentIndex
from tagkin.catalogue.photographs import Photographs, TaggedContent
from tagkin.catalogue.runs import Runs
from tagkin.catalogue.suggest_run import (
    OnStored,
    Steps,
    SuggestOptions,
    SuggestRun,
    contents_by_path,
    suggest_tags,
)
from tagkin.catalogue.suggestions import Suggestions
from tagkin.catalogue.tag_records import tag_number
from tagkin.errors import DamagedModel, InvalidInput, StorageError
from tagkin.progress import Progress, silent
from tagkin.storage import read_checksum

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from tagkin.annotator import Annotator
    from tagkin.annotator.photograph_reader import PhotographReader
    from tagkin.collection.times import Moments
    from tagkin.features import FeatureCache

__all__ = ["CollectionModel", "Needs", "fit_pays"]

_FEWEST = 6  # photographs with tags that can be learned from
_N_DOUBTS = 200  # stored at least
_MOST_OTHERS = 1500  # untagged photographs that tell examples from the rest
_FEWEST_NEW, _ENOUGH_NEW = 5, 20  # photographs with a new tag, and with new tags, for a new fit
_IS_TAGGED = (
    "EXISTS (SELECT 1 FROM photographs p JOIN found f ON f.photograph = p.id "
    "WHERE p.content = c.id AND p.gone IS NULL)"
)
_SETTINGS = ("backbone", "min_count")  # of an annotator, that a run of `train` keeps
_by_digest = attrgetter("digest")  # sorts photographs in a fixed random order
_COLUMNS = 64  # tags whose quality is measured at once


@dataclass(frozen=True)
class Needs:
    """The missing parts of a review."""

    tags: bool
    """There are no tags, so nothing to learn from."""
    model: bool
    """There is no model, or it has learned from a part of the tags only."""
    n_new: int
    """Photographs that the model has not suggested tags for."""
    n_decided: int
    """Decisions since the last training."""
    is_due: bool
    """Whether a new fit is worthwhile."""


class CollectionModel(CataloguePart):
    """The model of a catalogue: ``catalogue.model``."""

    # --- state ---------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The folder of the model, which `train` makes."""
        return self._db.path.with_suffix(".model")

    @property
    def exists(self) -> bool:
        """Whether there is a model."""
        return self.folder.is_dir()

    def needs(self) -> Needs:
        """Return the parts that are missing or outdated before a review."""
        trained = Runs(self._db).last_training()
        n_decided = self._db.value(
            f"SELECT count(*) FROM decisions d WHERE d.run > ? AND d.holds AND {IS_ANSWER}",
            (trained,),
        )
        n_tags, n_rejected = self._db.rows(
            "SELECT total(n_found + n_accepted), total(n_rejected) FROM tags"
        )[0]
        n_new_tags = self._count_unlearned() - self._unlearned_at_training()
        return Needs(
            tags=not n_tags,
            model=not trained or not self.exists or self.is_partial,
            n_new=Suggestions(self._db).count_missing(),
            n_decided=n_decided,
            is_due=fit_pays(n_decided, n_tags + n_rejected)
            or (trained > 0 and n_new_tags >= _ENOUGH_NEW)
            or (not trained and self._can_start_from_tags()),
        )

    def _can_start_from_tags(self) -> bool:
        """Whether tags are enough to learn from, and there are no suggestions to answer.

        Suggestions by name do not wait for answers if a person gave a tag of their own.
        """
        own = (
            "SELECT EXISTS (SELECT 1 FROM decisions d WHERE d.holds AND d.verdict = 1 "
            "AND d.confidence IS NULL GROUP BY d.tag HAVING count(*) >= ?)"
        )
        if self._db.value(own, (_FEWEST,)):
            return True
        if self._db.value("SELECT EXISTS (SELECT 1 FROM suggestions)"):
            return False
        n_tagged = self._db.value(
            f"SELECT count(*) FROM contents c WHERE n_tags > 0 AND {HAS_FILE.format('c.id')}"
        )
        return bool(n_tagged >= _FEWEST)

    def _count_unlearned(self) -> int:
        """Count the tags of photographs that the model does not know, each on several of them."""
        return int(
            self._db.value(
                "SELECT total(n_found + n_accepted) FROM tags WHERE quality IS NULL "
                "AND NOT forgotten AND same_as IS NULL AND n_found + n_accepted >= ?",
                (_FEWEST_NEW,),
            )
        )

    def _unlearned_at_training(self) -> int:
        """Return what `_count_unlearned` said after the last training."""
        trained = Runs(self._db).last_ended("train")
        return 0 if trained is None else trained.outcome.get("unlearned", 0)

    def fingerprint(self) -> str | None:
        """Return the fingerprint of the last trained model, or None without a model."""
        trained = Runs(self._db).last_ended("train")
        return trained.model if trained and self.exists else None

    @property
    def is_partial(self) -> bool:
        """Whether the last training used a part of the tagged photographs, to finish earlier."""
        trained = Runs(self._db).last_ended("train")
        return trained is not None and bool(trained.parameters.get("partial"))

    def n_learned(self) -> int:
        """Return how many photographs with tags in files the last training could learn from."""
        trained = Runs(self._db).last_ended("train")
        if trained is None or not self.exists:
            return 0
        n_tagged = trained.parameters.get("tagged")
        return n_tagged if isinstance(n_tagged, int) else self.n_tagged()

    def n_tagged(self) -> int:
        """Count photographs with tags in files."""
        return int(self._db.value(f"SELECT count(*) FROM contents c WHERE {_IS_TAGGED}"))

    def load(self, cache: FeatureCache | bool = True) -> tuple[Annotator, str]:
        """Load the model; return it with its fingerprint.

        `cache` is where it keeps features, as in `Annotator`.
        """
        if not self.exists:
            raise StorageError(
                f"There is no model of {self._db.root} yet. `tagkin train` learns one."
            )
        from tagkin import storage
        from tagkin.annotator import Annotator

        try:
            annotator = storage.load(self.folder)
        except StorageError as error:
            raise DamagedModel(f"{error} `tagkin train` learns a new one.") from error
        if not isinstance(annotator, Annotator):
            raise DamagedModel(f"{self.folder} is not a model of photographs: train again.")
        annotator.cache = cache
        annotator.set_photographs(self._find_files(annotator), annotator.digests_)
        return annotator, read_checksum(self.folder)

    def _find_files(self, annotator: Annotator) -> list[str]:
        """Return where the photographs of a model are now; where they were if they are gone."""
        rows = self._db.rows(
            "SELECT c.digest, coalesce(min(CASE WHEN p.gone IS NULL THEN p.path END), min(p.path)) "
            "FROM contents c JOIN photographs p ON p.content = c.id GROUP BY c.id"
        )
        files = {digest.hex(): self._db.absolute(path) for digest, path in rows}
        pairs = zip(annotator.digests_, annotator.files_, strict=True)
        return [files.get(digest) or self._db.absolute(name) for digest, name in pairs]

    def reader(self) -> PhotographReader:
        """Return the reader of photographs with the backbone of the model, or the default one."""
        from tagkin.annotator.photograph_reader import PhotographReader

        return PhotographReader(self.unfitted().backbone)

    def unfitted(self) -> Annotator:
        """Return an annotator with the settings of the model, or of a model that cannot be read.

        A model of another version of tagkin cannot be. Without any model, the settings are usual.
        """
        from tagkin.annotator import Annotator

        if not self.exists:
            return Annotator()
        try:
            return self.load()[0].unfitted()
        except DamagedModel:
            trained = Runs(self._db).last_ended("train")
            kept: dict[str, Any] = {} if trained is None else dict(trained.parameters)
            return Annotator(**{key: kept[key] for key in _SETTINGS if key in kept})

    # --- training ------------------------------------------------------------------------

    def to_learn_from(self) -> tuple[list[TaggedContent], int]:
        """Return photographs with tags or answers, and the number of all photographs."""
        contents = self._read_contents()
        labelled = [content for content in contents if content.known_tags or content.is_answered]
        if not any(content.known_tags for content in labelled):
            raise InvalidInput(
                f"None of the {len(contents):,} photographs in {self._db.root} has a tag. Tag "
                "some, such as with tagkin accept PHOTO --tag TAG, or let common tags be suggested "
                "by their names: tagkin suggest --vocabulary common"
            )
        return labelled, len(contents)

    def _read_contents(self) -> list[TaggedContent]:
        """Return all contents; with few other tags, tags that were accepted in bulk count."""
        contents = Photographs(self._db).with_tags()
        if sum(bool(content.known_tags) for content in contents) >= _FEWEST:
            return contents
        return [content._replace(bulk=()) for content in contents]

    def others_than(self, examples: Sequence[TaggedContent]) -> list[TaggedContent]:
        """Return photographs without a tag, if nothing but a few examples of tags is known."""
        from tagkin.annotator.problem import has_examples_only

        known = {content.content for content in examples}
        others = [content for content in self._read_contents() if content.content not in known]
        others = sorted(others, key=_by_digest)[:_MOST_OTHERS]
        return others if has_examples_only(*_count_tags([*examples, *others])) else []

    def to_evaluate_on(self) -> list[TaggedContent]:
        """Return the photographs to measure suggestions with: those that count as complete."""
        return self.choose_complete(self.to_learn_from()[0])

    def moments_of(self, contents: Sequence[TaggedContent]) -> Moments:
        """Return when and where photographs were taken, and their folders."""
        return MomentIndex(self._db).of([content.content for content in contents])

    @staticmethod
    def choose_complete(contents: Sequence[TaggedContent]) -> list[TaggedContent]:
        """Return the photographs with tags that count as complete in training."""
        from tagkin.annotator.problem import count_as_complete

        tagged = [content for content in contents if content.known_tags]
        counted = count_as_complete(*_count_tags(tagged))
        return [content for content, is_counted in zip(tagged, counted, strict=True) if is_counted]

    def train(
        self,
        annotator: Annotator,
        *,
        n_first: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Fit an annotator to the tags in the catalogue, and save it beside the catalogue.

        With `n_first`, learn only from the first `n_first` photographs in a fixed random order.

        A photograph with tags in its files is complete, unless a person declared them incomplete,
        and so is a finished photograph. On other photographs, only their tags and rejected tags are
        known. This also stores the quality of each tag, and tags that seem wrong or missing.
        Return the number of the run.
        """
        from tagkin.storage import check_folder

        folder = check_folder(self.folder, overwrite=True)
        n_tagged = self.n_tagged() if n_first is None else n_first
        settings = {key: getattr(annotator, key) for key in _SETTINGS}
        part = {} if n_first is None else {"partial": True}
        with self._db.run("train", {**settings, "tagged": n_tagged, **part}) as run:
            contents, _ = self.to_learn_from()
            contents += self.others_than(contents)
            if n_first is not None:
                contents = sorted(contents, key=_by_digest)[:n_first]
            annotator.fit(
                [content.file for content in contents],
                [content.known_tags for content in contents],
                moments=self.moments_of(contents),
                rejected=[content.rejected for content in contents],
                accepted=[content.accepted for content in contents],
                complete=[content.is_complete for content in contents],
                progress=progress,
            )
            annotator.cache = True  # each command decides whether to keep features
            annotator.save(folder, overwrite=True)
            folder.chmod(0o700)  # it names photographs and tags, as the catalogue does
            run.model = read_checksum(folder)
            self._store_quality(_measure_quality(annotator))
            contents_of = contents_by_path(self._db, annotator)
            findings = annotator.audit()
            if len(findings) < _N_DOUBTS:  # the page shows the most doubtful, however certain
                findings = annotator.audit(_N_DOUBTS)
            n_doubts = Doubts(self._db).replace(run.id, findings, contents_of)
            run.outcome |= {
                "photographs": sum(map(bool, annotator.tags_)),
                "tags": len(annotator.vocabulary_.names_),
                "unlearned": self._count_unlearned(),
                "doubts": n_doubts,
            }
        return run.id

    def _store_quality(self, quality: dict[str, float]) -> None:
        with self._db.transaction():
            self._db.execute("UPDATE tags SET quality = NULL")
            self._db.execute_many(
                "UPDATE tags SET quality = ? WHERE id = ?",
                [(value, tag_number(self._db, name)) for name, value in quality.items()],
            )

    # --- suggesting ----------------------------------------------------------------------

    def suggest(
        self,
        annotator: Annotator,
        options: SuggestOptions,
        *,
        contents: Sequence[TaggedContent],
        fingerprint: str | None = None,
        on_stored: OnStored | None = None,
        progress: Progress | None = None,
    ) -> SuggestRun:
        """Suggest tags for photographs, in place of earlier suggestions for them.

        Tags that a person decided on are not suggested again. An annotator without a `fingerprint`
        is not fitted, and suggests the words of ``options.vocabulary`` by their meaning.
        `on_stored` is called with suggestions for a block of photographs when they are stored.
        """
        with self._db.run("suggest", options.to_dict(), model=fingerprint) as run:
            if fingerprint is not None:  # before photographs are read, which eyes may be sent
                annotator.reader.check_fingerprint(annotator.fingerprint_)
            run.outcome["kept"] = confirm_edits(self._db, annotator)
            is_whole = fingerprint is not None and not self.is_partial
            n_taught = self.teach(annotator) if is_whole else 0
            steps = Steps(progress or silent, on_stored)
            result = suggest_tags(self._db, run, annotator, contents, options, steps)
            result.n_taught = run.outcome["taught"] = n_taught
            self._store_bursts(run, annotator, steps.progress)
        return result

    def _store_bursts(self, run: Run, annotator: Annotator, step: Progress) -> None:
        """Find the bursts, if every photograph got suggestions and so has features."""
        if getattr(annotator.cache, "read_only", False):
            return  # a dry run keeps no features, and would compute them again
        if not Suggestions(self._db).count_missing():
            run.outcome["bursts"] = store_bursts(self._db, annotator, step)

    def teach(self, annotator: Annotator) -> int:
        """Update an annotator with tags that changed since its training; return how many.

        New tags wait for the next training.
        """
        learned = dict(zip(annotator.digests_, annotator.tags_, strict=True))
        changed = {
            content.file: content
            for content in self._read_contents()
            if set(content.known_tags) != set(learned.get(content.digest, ()))
        }
        seen = annotator.read_features(list(changed))
        contents = [changed[file] for file in seen.files]
        if contents:
            annotator.partial_fit(
                seen,
                [content.known_tags for content in contents],
                moments=self.moments_of(contents),
                rejected=[content.rejected for content in contents],
                complete=[content.is_complete for content in contents],
            )
        return len(contents)

    def common_tags(self) -> Sequence[str]:
        """Return common tags, to suggest by name if a person asks for them."""
        from tagkin.tag_meanings import common_tags

        return common_tags()

    def suggest_for_review(
        self, *, n_first: int | None = None, progress: Progress | None = None
    ) -> SuggestRun:
        """Suggest likely and unlikely tags for photographs that the stored model has not seen.

        Open suggestions of an earlier model stay as long as they are likely, with new confidences.
        With `n_first`, consider only the first `n_first` photographs, in the order of `train`.
        """
        annotator, fingerprint = self.load()
        return self.suggest(
            annotator,
            SuggestOptions.for_review(),
            contents=self.without_suggestions(n_first),
            fingerprint=fingerprint,
            progress=progress,
        )

    def without_suggestions(self, n_first: int | None = None) -> list[TaggedContent]:
        """Return photographs that no run since the last training suggested tags for.

        With `n_first`, consider only the first `n_first` photographs, in the order of `train`.
        """
        missing = Suggestions(self._db).missing()
        contents = sorted(Photographs(self._db).with_tags(), key=_by_digest)
        return [content for content in contents[:n_first] if content.content in missing]

    def refit(
        self,
        annotator: Annotator | None = None,
        *,
        progress: Progress | None = None,
    ) -> SuggestRun:
        """Retrain during a review, and suggest tags for every photograph.

        The old model and its suggestions stay until the new model has replaced them. The default is
        an annotator with the settings of the existing model.
        """
        self.train(self.unfitted() if annotator is None else annotator, progress=progress)
        return self.suggest_for_review(progress=progress)


def _count_tags(contents: Sequence[TaggedContent]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which photographs are complete, and how many tags and accepted ones each has."""
    import numpy as np

    return (
        np.array([content.is_complete for content in contents], dtype=bool),
        np.array([len(content.known_tags) for content in contents], dtype=int),
        np.array([len(content.accepted) for content in contents], dtype=int),
    )


def fit_pays(n_new: int, n_known: float) -> bool:
    """Return whether new answers make a fit worthwhile, given all known tags and answers.

    They do if they are two thirds of these. At least 200 are needed; 600 suffice until they are
    less than a fifth. After fewer answers, a fit changes confidences mostly by chance: in the worst
    fit of eight evenings, .87 to 1.09 of the right suggestions at 50 % were left for new
    photographs if the first fit came after 200 answers, and 1.01 to 1.26 if after 600.
    """
    return n_new >= max(200, min(600, n_known * 2 / 3), n_known / 5)


def _measure_quality(annotator: Annotator) -> dict[str, float]:
    """Return the average precision of each tag on photographs that the training held out."""
    from tagkin.evaluation import average_precision

    belonging = annotator.model_.belonging.tocsc()
    labels = annotator.method_.labels.tocsc()[: belonging.shape[0]]
    names = annotator.vocabulary_.names_
    quality: dict[str, float] = {}
    for start in range(0, belonging.shape[1], _COLUMNS):
        block = slice(start, start + _COLUMNS)
        values = average_precision(labels[:, block].tocsr(), belonging[:, block].toarray())
        quality |= {n: float(q) for n, q in zip(names[block], values, strict=True) if q == q}
    return quality
