"""Tag names and the columns of a label matrix that stand for them."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array, to_numpy
from tagkin.errors import InvalidInput, Parameter
from tagkin.labels.merging import plural_pairs
from tagkin.labels.spelling import TagReader, leaf_of, most_frequent
from tagkin.wording import count

__all__ = ["Vocabulary"]

TagLists = Iterable[Iterable[str] | None]


class Vocabulary(BaseEstimator):
    """Tags ↔ columns of a sparse label matrix Y (images × tags).

    Tags that differ in case, Unicode form or white space are one tag, shown in its most
    frequent spelling (the first seen where spellings tie). Columns are in the order of the
    normalised tags; `extend` adds columns at the end and never moves one.

    Parameters
    ----------
    min_count : int, default 1
        Tags on fewer images get no column; ``dropped_`` lists them.
    aliases : mapping of str to str, or None
        Spelling → the tag that it stands for. Aliases may lead to aliases. One for a parent in
        a hierarchy holds for its children too.
    separator : str, sequence of str, or None
        What separates the levels of hierarchical tags, such as "|" in ``animal|dog``. With
        several, ``("|", "/")``, all of them mean the same. None: tags have no levels.
    imply_parents : bool, default True
        Whether ``animal|dog`` also puts the tag ``animal`` on the image.
    merge_levels : bool, default False
        Whether ``dog`` and ``animal|dog`` are one tag, where no other tag ends in ``dog``. The
        more frequent form is shown.
    merge_plurals : bool, default False
        Whether ``dog`` and ``dogs`` are one tag, where both occur (English plurals). The more
        frequent form is shown.
    exclude : sequence of str, or None
        Tags that get no column, in whatever spelling.
    leaf_only : bool, default False
        Whether ``names_`` are last levels alone, ``dog`` for ``animal|dog``, where they are unique.

    Attributes
    ----------
    names_ : list of str
        The tags as shown, in the order of the columns.
    counts_ : int array of shape (D,)
        Images that carry each tag.
    dropped_, excluded_ : dict of str to int
        Tags that got no column, and on how many images they are.
    plurals_ : list of (str, str)
        Singulars and plurals that `merge_plurals` would make one.
    n_images_ : int
        Images seen by `fit` and `extend`.
    unknown_ : dict of str to int
        Tags that the last `transform` met and `fit` never saw, and on how many images.

    Examples
    --------
    >>> vocabulary = Vocabulary(aliases={"puppy": "dog"})
    >>> Y = vocabulary.fit_transform([["Dog", "beach"], ["puppy"], None, ["Dog"]])
    >>> vocabulary.names_, vocabulary.counts_.tolist()
    (['beach', 'Dog'], [1, 3])
    >>> Y.toarray().tolist()
    [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self,
        min_count: int = 1,
        aliases: Mapping[str, str] | None = None,
        separator: str | Sequence[str] | None = None,
        imply_parents: bool = True,
        merge_levels: bool = False,
        merge_plurals: bool = False,
        exclude: Sequence[str] | None = None,
        leaf_only: bool = False,
    ):
        self.min_count = min_count
        self.aliases = aliases
        self.separator = separator
        self.imply_parents = imply_parents
        self.merge_levels = merge_levels
        self.merge_plurals = merge_plurals
        self.exclude = exclude
        self.leaf_only = leaf_only

    # By normalised tag, dropped ones included: images that carry it, and its spellings.
    _images: dict[str, int]
    _spellings: dict[str, dict[str, int]]
    _columns: dict[str, int]  # by normalised tag, in the order of the columns
    _names: list[str]  # as shown, in the order of the columns
    _words: dict[str, str] | None = None  # what `TagReader.forms` found
    _above: dict[str, Any] | None = None
    unknown_: dict[str, int]

    def _reader(self) -> TagReader:
        return TagReader(self.aliases, self.separator, self.imply_parents, self._words, self._above)

    # --- learning ------------------------------------------------------------------------

    def fit(self, tag_lists: TagLists, y: object = None) -> Self:
        """Learn the tags of images: one list of tags per image, None where it has none."""
        lists = [_materialised(row) for row in _listed(tag_lists)]
        reader = TagReader(self.aliases, self.separator, self.imply_parents)
        rows = self._read(lists, reader)  # if that fails, what was learned before stays
        self._words, self._above = {}, {}
        if self.merge_levels or self.merge_plurals:
            counts = Counter(tag for row in lists for tag in set(row or ()))
            forms = reader.forms(counts, self.merge_plurals, self.merge_levels)
            self._words, self._above = forms
            rows = self._read(lists, self._reader())
        self._images, self._spellings, self._columns, self._names = {}, {}, {}, []
        self.n_images_, self.unknown_ = 0, {}
        return self._learn(rows)

    def extend(self, tag_lists: TagLists) -> Self:
        """Learn the tags of further images. New tags get columns after the present ones.

        Present columns keep their place and name. A tag that was dropped gets a column when
        old and new images with it together reach `min_count`.
        """
        check_is_fitted(self)
        return self._learn(self._read(tag_lists, self._reader()))

    def _read(self, tag_lists: TagLists, reader: TagReader) -> list[list[tuple[str, str]]]:
        """(normalised tag, spelling) of all tags of every image."""
        if not isinstance(self.min_count, Integral) or self.min_count < 1:
            raise InvalidInput(
                Parameter("min_count"), f" must be a whole number from 1; found {self.min_count!r}."
            )
        return [list(reader.tags_of(row, i)) for i, row in enumerate(_listed(tag_lists))]

    def _learn(self, rows: list[list[tuple[str, str]]]) -> Self:
        for row in rows:
            for key in dict(row):
                self._images[key] = self._images.get(key, 0) + 1
            for key, spelling in row:
                spellings = self._spellings.setdefault(key, {})
                spellings[spelling] = spellings.get(spelling, 0) + 1
        self.n_images_ += len(rows)
        excluded = self._excluded()
        for key in sorted(set(self._images) - excluded):
            if self._images[key] >= self.min_count and key not in self._columns:
                self._columns[key] = len(self._columns)
                self._names.append(self._shown(key))
        return self

    def _excluded(self) -> set[str]:
        if isinstance(self.exclude, str):
            raise InvalidInput(f"exclude is a list of tags; found the text {self.exclude!r}.")
        reader = self._reader()
        read = (list(reader.tags_of([tag], 0)) for tag in _tags(self.exclude))
        return {found[0][0] for found in read if found}

    def _shown(self, key: str) -> str:
        return most_frequent(self._spellings[key])

    def check_stored(self) -> None:
        """Refuse what no `fit` would have left: parameters and tables that do not go together."""
        if not isinstance(self.separator, (str, type(None))) and not self.separator:
            raise InvalidInput("there is no separator in the list of separators")
        reader = self._reader()
        list(reader.tags_of(["a"], 0))
        self._excluded()
        if not hasattr(self, "_columns"):
            return  # not fitted
        for key in self._columns:
            if key not in self._images or key not in self._spellings:
                raise InvalidInput(f"the tag {key!r:.60} has a column and was on no image")
        for key in self._images:
            if key not in self._spellings:
                raise InvalidInput(f"the tag {key!r:.60} has no spelling")

    # --- tags to columns and back --------------------------------------------------------

    def transform(self, tag_lists: TagLists, *, unknown: str = "report") -> scipy.sparse.csr_array:
        """Label matrix Y (images × tags), float32: 1 where an image carries a tag, else 0.

        Tags that `fit` never saw are counted in ``unknown_``, or are an error with
        ``unknown="raise"``. Tags that it dropped have no column either; they are in ``dropped_``.
        """
        check_is_fitted(self)
        if unknown not in ("report", "raise"):
            raise InvalidInput(f'unknown must be "report" or "raise"; found {unknown!r}.')
        reader = self._reader()
        indices: list[int] = []
        ends = [0]
        missing: Counter[str] = Counter()
        shown: dict[str, str] = {}
        for i, row in enumerate(_listed(tag_lists)):
            tags = dict(reversed(list(reader.tags_of(row, i))))
            new = {key: spelling for key, spelling in tags.items() if key not in self._images}
            if new and unknown == "raise":
                raise InvalidInput(f"Row {i}: ", *self._not_there(*next(iter(new.items()))))
            for key, spelling in new.items():
                missing[key] += 1
                shown.setdefault(key, spelling)
            indices.extend(sorted(self._columns[key] for key in tags if key in self._columns))
            ends.append(len(indices))
        self.unknown_ = {shown[key]: count for key, count in missing.most_common()}
        return scipy.sparse.csr_array(
            (np.ones(len(indices), np.float32), np.array(indices, np.int32), np.array(ends)),
            shape=(len(ends) - 1, len(self._columns)),
        )

    def fit_transform(self, tag_lists: TagLists, y: object = None) -> scipy.sparse.csr_array:
        """`fit`, and the label matrix of the same images."""
        rows = [_materialised(row) for row in _listed(tag_lists)]
        return self.fit(rows).transform(rows)

    def inverse_transform(self, Y: Array) -> list[list[str]]:
        """Names of the tags with a non-zero entry in each row of Y (n×D)."""
        check_is_fitted(self)
        rows = scipy.sparse.csr_array(Y if scipy.sparse.issparse(Y) else np.atleast_2d(to_numpy(Y)))
        if rows.shape[1] != len(self._names):
            raise InvalidInput(
                f"Y has shape {tuple(rows.shape)}; expected one column for each of the "
                f"{len(self._names)} tags."
            )
        shown = self.names_
        names: list[list[str]] = [[] for _ in range(rows.shape[0])]
        for row, column in zip(*rows.sorted_indices().nonzero(), strict=True):
            names[row].append(shown[column])
        return names

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """The tags as shown, in the order of the columns, as an array of str, shape (D,)."""
        return np.array(self.names_, dtype=object)

    def index(self, name: str) -> int:
        """The column of a tag, in whatever spelling, or by an alias."""
        check_is_fitted(self)
        found = list(self._reader().tags_of([name], 0))
        key = found[0][0] if found else ""
        if key not in self._columns:
            raise InvalidInput(*self._not_there(key, name))
        return self._columns[key]

    def _not_there(self, key: str, name: str) -> list[str | Parameter]:
        """Return the parts of a message that says why a tag is missing."""
        if key in self._excluded():
            return [f"The tag {name!r} is excluded. Leave it out of exclude, and fit again."]
        if key in self._images:
            n_images = count(self._images[key], "image")
            least = Parameter("min_count", self.min_count)
            return [
                f"The tag {name!r} was dropped: it is on {n_images}, fewer than ",
                least,
                ". Lower ",
                Parameter("min_count"),
                ".",
            ]
        close = difflib.get_close_matches(key, self._columns, n=3)
        names = ", ".join(repr(self._names[self._columns[k]]) for k in close)
        hint = f"Close to it: {names}." if names else "Nothing is close to it."
        size = count(len(self._names), "tag")
        return [f"The tag {name!r} is not in the vocabulary of {size}. {hint}"]

    # --- what is in it -------------------------------------------------------------------

    @property
    def names_(self) -> list[str]:
        """The tags as shown, in the order of the columns."""
        check_is_fitted(self)
        if not self.leaf_only:
            return list(self._names)
        keys = [leaf_of(key) for key in self._columns]
        taken = Counter(keys)
        return [
            self._leaf(name) if taken[key] == 1 else name
            for key, name in zip(keys, self._names, strict=True)
        ]

    def _leaf(self, name: str) -> str:
        separators = [self.separator] if isinstance(self.separator, str) else self.separator or ()
        ends = (name.rpartition(separator)[2] for separator in separators)
        return min(ends, key=len, default=name).strip()

    @property
    def counts_(self) -> np.ndarray:
        """Images that carry each tag, in the order of the columns, shape (D,)."""
        check_is_fitted(self)
        return np.array([self._images[key] for key in self._columns], dtype=np.int64)

    @property
    def dropped_(self) -> dict[str, int]:
        """Tags on fewer than `min_count` images, most frequent first, with their counts."""
        check_is_fitted(self)
        left_out = set(self._columns) | self._excluded()
        gone = [(-n, key) for key, n in self._images.items() if key not in left_out]
        return {self._shown(key): -n for n, key in sorted(gone)}

    @property
    def excluded_(self) -> dict[str, int]:
        """Tags of `exclude` as they are given there, and on how many images they were."""
        check_is_fitted(self)
        reader = self._reader()
        keys = {tag: next(iter(reader.tags_of([tag], 0)), ("",))[0] for tag in _tags(self.exclude)}
        return {tag: self._images.get(key, 0) for tag, key in keys.items()}

    @property
    def plurals_(self) -> list[tuple[str, str]]:
        """Pairs of tags, singular and plural, that `merge_plurals` would make one."""
        check_is_fitted(self)
        words: dict[str, str] = {}
        for key, name in zip(self._columns, self._names, strict=True):
            words.setdefault(leaf_of(key), self._leaf(name))
        return [(words[one], words[several]) for one, several in plural_pairs(words)]

    def spelled(self, tag_lists: TagLists) -> list[list[str]]:
        """Tags as this vocabulary writes them; those that have no column as they are, each once."""
        check_is_fitted(self)
        reader, names = self._reader(), self.names_
        result = []
        for i, row in enumerate(_listed(tag_lists)):
            tags = [(tag, list(reader.tags_of([tag], i))) for tag in _tags(row)]
            keys = {found[0][0]: tag for tag, found in reversed(tags) if found}
            own = {names[self._columns[k]] if k in self._columns else t for k, t in keys.items()}
            result.append(sorted(own))
        return result

    def describe(self) -> list[str]:
        """What this vocabulary is, in a few sentences."""
        facts = [
            f"{count(len(self.names_), 'tag')}, learned from {count(self.n_images_, 'image')}."
        ]
        dropped = self.dropped_
        if dropped:
            first = ", ".join(list(dropped)[:10]) + (", …" if len(dropped) > 10 else "")
            facts.append(
                f"{count(len(dropped), 'tag was', 'tags were')} dropped, each on fewer than "
                f"{count(self.min_count, 'image')}: "
                f"{first}."
            )
        return facts


def _listed(tag_lists: Any) -> list[Any]:
    if isinstance(tag_lists, (str, bytes, Mapping)) or not isinstance(tag_lists, Iterable):
        raise InvalidInput(
            f"Expected one list of tags per image; found {type(tag_lists).__name__}. Pass a list "
            "of lists, with None or [] for an image without tags."
        )
    return list(tag_lists)


def _tags(row: Any) -> Iterable[str]:
    """The tags of a row, which may be an array: whether one is true is not known."""
    return () if row is None else row


def _materialised(row: Any) -> Any:
    """A row that can be read twice; what is no list of tags is told when it is read."""
    odd = row is None or isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable)
    return row if odd else list(row)
