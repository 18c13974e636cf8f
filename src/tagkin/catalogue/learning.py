"""Learning from a catalogue, and suggestions that go into it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.decisions import ACCEPTED, REJECTED, decided_tags
from tagkin.catalogue.evidence import pack_evidence
from tagkin.catalogue.filters import in_folder
from tagkin.catalogue.found import TagNumbers
from tagkin.catalogue.suggestions import Suggested, put_suggestions
from tagkin.collection import Collection, Progress
from tagkin.errors import InvalidInput
from tagkin.images import Failure

if TYPE_CHECKING:
    from tagkin.annotator import Annotator, Finding, PhotoSuggestions
    from tagkin.features import FeatureCache

__all__ = [
    "Carrying",
    "SuggestRun",
    "carried_tags",
    "load_model",
    "model_fingerprint",
    "suggest",
    "teach",
    "to_learn_from",
    "train",
]

_BLOCK = 1000  # photographs that are suggested for at once
_STORED = 100  # those in one transaction: whoever decides meanwhile waits for its end
_COLUMNS = 64  # tags whose quality is measured at once
_LIKELY = 0.1  # confidence of a suggestion that is worth a decision
_ENOUGH = 50  # photographs to learn from without those that were reviewed in part


class Carrying(NamedTuple):
    """A content, one photograph that has it, and the tags that it carries."""

    content: int
    digest: str
    file: str
    """Where it is on this machine."""
    tags: list[str]
    """Found in files or accepted, and not rejected; forgotten ones are none."""
    rejected: list[str]
    accepted: Sequence[str] = ()
    """Of the tags, those that were suggested and a person accepted."""
    is_partial: bool = False
    """Reviewed in part: it has no other tags, and likely ones that nobody has decided on."""


def carried_tags(
    catalogue: Catalogue, *, folder: str | None = None, only_untagged: bool = False
) -> list[Carrying]:
    """Every content that is there, with the tags that it carries now.

    Parameters
    ----------
    catalogue : Catalogue
    folder : str, optional
        Only photographs in this folder, from the root, and in those in it.
    only_untagged : bool, default False
        Only those that carry none.
    """
    tags: dict[int, list[str]] = {}
    for content, name in catalogue.rows(
        "SELECT DISTINCT p.content, t.name FROM found f JOIN photographs p ON p.id = f.photograph "
        "JOIN tags t ON t.id = f.tag WHERE p.content IS NOT NULL AND NOT t.forgotten "
        "UNION SELECT d.content, t.name FROM decisions d JOIN tags t ON t.id = d.tag "
        "WHERE d.holds AND d.verdict = 1 AND NOT t.forgotten"
    ):
        tags.setdefault(content, []).append(name)
    rejected = decided_tags(catalogue, REJECTED)
    accepted = decided_tags(catalogue, ACCEPTED, suggested=True)
    waiting = {
        content
        for (content,) in catalogue.rows(
            "SELECT DISTINCT content FROM suggestions WHERE confidence >= ?", (_LIKELY,)
        )
    }
    rows = catalogue.rows(
        "SELECT c.id, c.digest, min(p.path) FROM photographs p JOIN contents c ON c.id = p.content "
        f"WHERE p.gone IS NULL AND (NOT ? OR c.n_tags = 0) AND {in_folder('p.path', folder)} "
        "GROUP BY c.id ORDER BY min(p.path)",
        (only_untagged,),
    )
    found = []
    for content, digest, path in rows:
        no = rejected.get(content, [])
        own = [name for name in tags.get(content, ()) if name not in no]
        yes = [name for name in accepted.get(content, ()) if name in own]
        partial = content in waiting and len(own) == len(yes) and bool(own or no)
        file = catalogue.absolute(path)
        found.append(Carrying(content, digest.hex(), file, own, no, yes, partial))
    return found


# --- learning ----------------------------------------------------------------------------


def train(
    catalogue: Catalogue,
    annotator: Annotator,
    parameters: dict[str, Any],
    *,
    partial: bool = True,
    progress: Progress | None = None,
) -> int:
    """Fit an annotator to the tags in a catalogue, and keep the model beside it.

    Accepted tags are tags like others; rejected ones are negative examples. How many of a tag's
    suggestions were accepted says how sure the next ones are. The quality of each tag and the tags
    that seem wrong or missing go into the catalogue. `partial` is that of `to_learn_from`.

    Returns
    -------
    run : int
    """
    with catalogue.run("train", parameters) as run:
        some, _ = to_learn_from(catalogue, partial=partial)
        annotator.fit(
            [one.file for one in some],
            [one.tags for one in some],
            rejected=[one.rejected for one in some],
            accepted=[one.accepted for one in some],
            progress=progress,
        )
        annotator.cache = True  # whether to keep features is for each command to say
        annotator.save(catalogue.model_folder, overwrite=True)
        catalogue.model_folder.chmod(0o700)  # it names photographs and tags, as the catalogue does
        run.model = model_fingerprint(catalogue.model_folder)
        _put_quality(catalogue, tag_quality(annotator))
        n_doubts = _put_doubts(catalogue, run.id, annotator)
        run.outcome |= {
            "photographs": len(annotator.files_),
            "tags": len(annotator.vocabulary_.names_),
            "doubts": n_doubts,
        }
    return run.id


def to_learn_from(catalogue: Catalogue, *, partial: bool = True) -> tuple[list[Carrying], int]:
    """Photographs that carry tags, or for which some were rejected; and how many there are.

    Without `partial`, those that were reviewed in part are left out where there are enough others:
    in the middle of a review, what nobody has asked about them yet would count as a no.
    """
    every = carried_tags(catalogue)
    some = [one for one in every if one.tags or one.rejected]
    if not any(one.tags for one in some):
        raise InvalidInput(
            f"None of the {len(every):,} photographs in {catalogue.root} carries a tag. Tag some, "
            "or accept tags by name: tagkin accept PHOTO --tag TAG"
        )
    whole = [one for one in some if not one.is_partial]
    is_enough = sum(bool(one.tags) for one in whole) >= _ENOUGH
    return whole if is_enough and not partial else some, len(every)


def model_fingerprint(folder: Path) -> str:
    """SHA-256 of what a model was learned to be, in hexadecimal: of its arrays and settings."""
    return hashlib.sha256((folder / "model.json").read_bytes()).hexdigest()


def load_model(catalogue: Catalogue, cache: FeatureCache | bool = True) -> tuple[Annotator, str]:
    """The model that was learned from a collection, and its fingerprint.

    `cache` is where it keeps features, as in `Annotator`.
    """
    folder = catalogue.learned_model()
    from tagkin.annotator import Annotator

    annotator = Annotator.load(folder)
    annotator.cache = cache
    annotator.adopt_folder(catalogue.root, prefer=True)  # not where a copy was learned from last
    return annotator, model_fingerprint(folder)


def tag_quality(annotator: Annotator) -> dict[str, float]:
    """Average precision of each tag on photographs that were held out when it was learned."""
    from tagkin.evaluation import average_precision

    held_out = annotator.held_out_.tocsc()
    labels = annotator.method_.labels_.tocsc()[: held_out.shape[0]]
    names = annotator.vocabulary_.names_
    found: dict[str, float] = {}
    for start in range(0, held_out.shape[1], _COLUMNS):
        block = slice(start, start + _COLUMNS)
        each = average_precision(labels[:, block].tocsr(), held_out[:, block].toarray())
        found |= {n: float(q) for n, q in zip(names[block], each, strict=True) if q == q}
    return found


def _put_quality(catalogue: Catalogue, quality: dict[str, float]) -> None:
    with catalogue.transaction() as connection:
        numbers = TagNumbers(connection)
        connection.execute("UPDATE tags SET quality = NULL")
        connection.executemany(
            "UPDATE tags SET quality = ? WHERE id = ?",
            [(value, numbers[name]) for name, value in quality.items()],
        )


def _put_doubts(catalogue: Catalogue, run: int, annotator: Annotator) -> int:
    """Put tags that seem wrong or missing in the place of those found before."""
    findings: list[Finding] = annotator.audit()
    contents = _contents_of(catalogue, annotator)
    with catalogue.transaction() as connection:
        numbers = TagNumbers(connection)
        connection.execute("DELETE FROM doubts")
        rows = [
            (
                contents[one.file],
                numbers[one.tag],
                run,
                one.kind,
                one.confidence,
                pack_evidence((contents[k.file], k.share) for k in one.kin if k.file in contents),
            )
            for one in findings
            if one.file in contents
        ]
        connection.executemany("INSERT OR IGNORE INTO doubts VALUES (?, ?, ?, ?, ?, ?)", rows)
    return len(rows)


def _contents_of(catalogue: Catalogue, annotator: Annotator) -> dict[str, int]:
    """Contents by the paths under which an annotator knows its photographs."""
    numbers = {d.hex(): c for c, d in catalogue.rows("SELECT id, digest FROM contents")}
    pairs = zip(annotator.paths_, annotator.digests_, strict=True)
    return {path: numbers[str(d)] for path, d in pairs if str(d) in numbers}


# --- suggesting --------------------------------------------------------------------------


@dataclass
class SuggestRun:
    """What a run suggested."""

    run: int
    n_photographs: int = 0
    """Photographs that were looked at."""
    n_with: int = 0
    """Those among them that got suggestions."""
    n_suggestions: int = 0
    n_taught: int = 0
    """Photographs whose tags changed since the model was learned, and count at once."""
    failures: list[Failure] = field(default_factory=list)


def suggest(
    catalogue: Catalogue,
    annotator: Annotator,
    fingerprint: str,
    wanted: dict[str, Any],
    *,
    folder: str | None = None,
    only_untagged: bool = False,
    partial: bool = True,
    progress: Progress | None = None,
) -> SuggestRun:
    """Suggest tags for photographs of a catalogue, and keep the suggestions in it.

    What was suggested for these photographs before makes room. Tags that a person has decided
    on are not suggested again.

    Parameters
    ----------
    catalogue : Catalogue
    annotator : Annotator
    fingerprint : str
        Of its model, for the history.
    wanted : dict
        ``n``, ``threshold``, ``precision`` and ``n_kin`` as in `Annotator.suggest`.
    folder, only_untagged
        As in `carried_tags`.
    partial : bool, default True
        Whether photographs that were reviewed in part are kin at once. What nobody has decided on
        counts as a no then: not where a `LiveReview` learns from the decisions alone.
    """
    step = progress or (lambda what, done, total: None)
    given = {name: value for name, value in wanted.items() if value is not None}
    given |= {"folder": folder} if folder else {}
    given |= {"only_untagged": True} if only_untagged else {}
    with catalogue.run("suggest", given, model=fingerprint) as run:
        result = SuggestRun(run.id)
        every = carried_tags(catalogue)
        result.n_taught = teach(annotator, [o for o in every if partial or not o.is_partial])
        contents = _contents_of(catalogue, annotator)
        some = carried_tags(catalogue, folder=folder, only_untagged=only_untagged)
        for start in range(0, len(some), _BLOCK):
            step("Suggesting", start, len(some))
            block = some[start : start + _BLOCK]
            suggested, failures = _suggested(annotator, block, wanted)
            result.failures += failures
            each = list(_for_catalogue(suggested, block, contents))
            for first in range(0, len(each), _STORED):
                part = each[first : first + _STORED]
                result.n_suggestions += put_suggestions(catalogue, run.id, part)
            result.n_photographs += len(block)
        step("Suggesting", len(some), len(some))
        result.n_with = catalogue.value(
            "SELECT count(DISTINCT content) FROM suggestions WHERE run = ?", (run.id,)
        )
        run.outcome |= {
            "photographs": result.n_photographs,
            "with_suggestions": result.n_with,
            "suggestions": result.n_suggestions,
            "taught": result.n_taught,
        }
    return result


def _suggested(
    annotator: Annotator, block: Sequence[Carrying], wanted: dict[str, Any]
) -> tuple[list[PhotoSuggestions], list[Failure]]:
    """Suggestions for some photographs, and why there are none for others."""
    collection = Collection([one.file for one in block], [one.tags for one in block])
    seen = annotator.read_features(collection)
    if not seen.files:
        return [], list(seen.failures)
    rejected = [one.rejected for one in block]
    return annotator.suggest(collection, rejected=rejected, **wanted), list(seen.failures)


def _for_catalogue(
    suggested: Sequence[PhotoSuggestions], block: Sequence[Carrying], contents: dict[str, int]
) -> Iterator[tuple[int, list[Suggested]]]:
    content_of = {one.file: one.content for one in block}
    for photo in suggested:
        yield (
            content_of[photo.file],
            [
                Suggested(
                    one.tag,
                    one.confidence,
                    [(contents[k.file], k.share) for k in one.kin if k.file in contents],
                    one.name_share,
                    one.readout_share,
                )
                for one in photo.suggestions
            ],
        )


def teach(annotator: Annotator, every: Sequence[Carrying]) -> int:
    """Let an annotator know tags that changed since it was fitted, without a new fit.

    Accepted tags count at once: their photographs are kin that carry them. Those that lost their
    tags are kin that carry none. A photograph that cannot be read teaches nothing.

    Returns
    -------
    n : int
        Photographs whose tags are others now.
    """
    known = {str(digest): i for i, digest in enumerate(annotator.digests_)}

    def learned(one: Carrying) -> set[str]:
        return set(annotator.tags_[known[one.digest]]) if one.digest in known else set()

    changed = [one for one in every if learned(one) != set(one.tags)]
    seen = annotator.read_features([one.file for one in changed if one.tags])
    readable = set(seen.files)
    changed = [one for one in changed if not one.tags or one.file in readable]
    if changed and all(one.digest in known for one in changed):
        # a tag that is quite new needs photographs that are new, or a new fit
        some = _with_column(annotator, {tag for one in changed for tag in one.tags})
        changed = [one._replace(tags=[t for t in one.tags if t in some]) for one in changed]
        changed = [one for one in changed if learned(one) != set(one.tags)]
    if tagged := {one.file: one for one in changed if one.tags}:
        rows = [tagged.get(file) for file in seen.files]
        annotator.partial_fit(
            seen,
            [one and one.tags for one in rows],
            rejected=[one and one.rejected for one in rows],
        )
    if bare := [known[one.digest] for one in changed if not one.tags]:
        _untag(annotator, bare)
    return len(changed)


def _untag(annotator: Annotator, rows: Sequence[int]) -> None:
    """Let photographs that were learned from carry nothing."""
    import numpy as np  # which short commands do without

    estimator = annotator.estimator_
    # of an image that is known, features are not looked at
    unseen = np.zeros((len(rows), estimator.n_features_in_), dtype=np.float32)
    estimator.partial_fit(unseen, [[]] * len(rows), known=np.array(rows))


def _with_column(annotator: Annotator, tags: set[str]) -> set[str]:
    """Those of the tags that an annotator can suggest."""
    names = sorted(tags)
    counts = annotator.vocabulary_.transform([[name] for name in names]).sum(axis=1)
    return {name for name, n in zip(names, counts, strict=True) if n}
