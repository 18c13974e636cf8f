"""Tag names and their columns in a label matrix."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Annotated, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, to_numpy
from tagkin.errors import InvalidInput, Parameter
from tagkin.labels.merging import plural_pairs
from tagkin.labels.spelling import TagReader, leaf_of, most_frequent
from tagkin.records.forms import storable
from tagkin.records.parameters import HasParameters
from tagkin.records.rules import Columns, Refused, Rule, Sizes, Table, Texts, Whole, describe_value
from tagkin.wording import count

__all__ = ["Vocabulary"]

TagLists = Iterable[Iterable[str] | None]


class _Levels(Rule):
    """Levels above a tag, and how many of them it implies."""

    def _check(self, value: object, sizes: Sizes, where: str) -> None:
        if not isinstance(value, list) or len(value) != 2:
            raise Refused(where, f"is {describe_value(value)}, not levels and their number")
        Texts().check(value[0], sizes, where)
        Whole(0, len(value[0])).check(value[1], sizes, where)


@storable
class Vocabulary(HasParameters):
    """Tags ↔ columns of a sparse label matrix Y (images × tags).

    Tags that differ only in case, Unicode form or white space are the same tag, shown in its most
    frequent spelling (the first seen in a tie). Columns are in the order of the normalised tags;
    `extend` adds columns at the end and never moves a column.

    Parameters
    ----------
    min_count : int, default 1
        Tags on fewer images get no column; ``dropped_`` lists them.
    aliases : mapping of str to str, or None
        Spelling → the tag that it means. Aliases may lead to aliases. An alias for a parent in a
        hierarchy applies to its children too.
    separator : str, sequence of str, or None
        Separators of the levels of hierarchical tags, such as "|" in ``animal|dog``. Several
        separators, such as ``("|", "/")``, mean the same. None means that tags have no levels.
    imply_parents : bool, default True
        Whether ``animal|dog`` also adds the tag ``animal`` to the image.
    merge_levels : bool, default False
        Whether ``dog`` and ``animal|dog`` are the same tag if no other tag ends in ``dog``. The
        more frequent form is shown.
    merge_plurals : bool, default False
        Whether ``dog`` and ``dogs`` are the same tag if both occur (English plurals). The more
        frequent form is shown.
    exclude : sequence of str, or None
        Tags that get no column, in any spelling.
    leaf_only : bool, default False
        Whether ``names_`` are only the last levels, such as ``dog`` for ``animal|dog``, if unique.

    Attributes
    ----------
    names_ : list of str
        The tags as shown, in the order of the columns.
    counts_ : int array of shape (D,)
        Number of images with each tag.
    dropped_, excluded_ : dict of str to int
        Tags without a column, and their numbers of images.
    plurals_ : list of (str, str)
        Singulars and plurals that `merge_plurals` would merge.
    n_images_ : int
        Number of images that `fit` and `extend` read.
    unknown_ : dict of str to int
        Tags in the last `transform` that `fit` did not read, and their numbers of images.

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
        *,
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

    # By normalised tag, dropped tags included: number of images, and spellings.
    _images: Annotated[dict[str, int], Table(Whole())]
    _spellings: Annotated[dict[str, dict[str, int]], Table(Table(Whole(), filled=True))]
    # by normalised tag, in the order of the columns
    _columns: Annotated[dict[str, int], Columns("D")]
    # as shown, in the order of the columns
    _names: Annotated[list[str], Texts("D")]
    # from `TagReader.forms`
    _words: dict[str, str]
    _above: Annotated[dict[str, tuple[list[str], int]], Table(_Levels())]
    n_images_: Annotated[int, Whole()]
    unknown_: Annotated[dict[str, int], Table(Whole())]

    def _check_fitted(self) -> None:
        if not hasattr(self, "_words"):
            from sklearn.exceptions import NotFittedError  # which scikit-learn's users catch

            raise NotFittedError("This Vocabulary is not fitted yet. Call fit(tag_lists) first.")

    def _reader(self) -> TagReader:
        self._check_fitted()
        return TagReader(self.aliases, self.separator, self.imply_parents, self._words, self._above)

    # --- learning ------------------------------------------------------------------------

    def fit(self, tag_lists: TagLists, y: object = None) -> Self:
        """Learn the tags of images, given one list of tags per image, or None if untagged.

        Parameters
        ----------
        tag_lists : iterable of lists of str
            The tags of each image; None if untagged.
        y : ignored
            For scikit-learn; not used.
        """
        lists = [_materialise(row) for row in _check_lists(tag_lists)]
        reader = TagReader(self.aliases, self.separator, self.imply_parents)
        rows = self._read(lists, reader)  # if that fails, the previous state stays
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
        """Learn the tags of more images. New tags get columns after the existing columns.

        Existing columns keep their position and name. A dropped tag gets a column once its old
        and new images together reach `min_count`.
        """
        return self._learn(self._read(tag_lists, self._reader()))

    def _read(self, tag_lists: TagLists, reader: TagReader) -> list[list[tuple[str, str]]]:
        """Return pairs (normalised tag, spelling) of all tags of every image."""
        if not isinstance(self.min_count, Integral) or self.min_count < 1:
            raise InvalidInput(
                Parameter("min_count"), f" must be a whole number from 1; found {self.min_count!r}."
            )
        return [list(reader.tags_of(row, i)) for i, row in enumerate(_check_lists(tag_lists))]

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
                self._names.append(self._display_name(key))
        return self

    def _excluded(self) -> set[str]:
        if isinstance(self.exclude, str):
            raise InvalidInput(f"exclude must be a list of tags; found the text {self.exclude!r}.")
        reader = self._reader()
        tags = (list(reader.tags_of([tag], 0)) for tag in _tags(self.exclude))
        return {pairs[0][0] for pairs in tags if pairs}

    def _display_name(self, key: str) -> str:
        return most_frequent(self._spellings[key])

    def check_stored(self) -> None:
        """Reject inconsistent parameters and tables, which no `fit` produces."""
        if not isinstance(self.separator, (str, type(None))) and not self.separator:
            raise InvalidInput("there is no separator in the list of separators")
        reader = self._reader()
        list(reader.tags_of(["a"], 0))
        self._excluded()
        for key in self._columns:
            if key not in self._images or key not in self._spellings:
                raise InvalidInput(f"the tag {key!r:.60} has a column and was on no image")
        for key in self._images:
            if key not in self._spellings:
                raise InvalidInput(f"the tag {key!r:.60} has no spelling")

    # --- tags to columns and back --------------------------------------------------------

    def transform(self, tag_lists: TagLists) -> scipy.sparse.csr_array:
        """Return the float32 label matrix Y (images × tags): 1 if an image has a tag, else 0.

        Tags that `fit` did not read are counted in ``unknown_``. Dropped tags have no column
        either; ``dropped_`` lists them.
        """
        reader = self._reader()
        indices: list[int] = []
        ends = [0]
        missing: Counter[str] = Counter()
        shown: dict[str, str] = {}
        for i, row in enumerate(_check_lists(tag_lists)):
            tags = dict(reversed(list(reader.tags_of(row, i))))
            for key, spelling in tags.items():
                if key not in self._images:
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
        """Fit, and return the label matrix of the same images.

        Parameters
        ----------
        tag_lists : iterable of lists of str
            The tags of each image; None if untagged.
        y : ignored
            For scikit-learn; not used.
        """
        rows = [_materialise(row) for row in _check_lists(tag_lists)]
        return self.fit(rows).transform(rows)

    def inverse_transform(self, Y: Array) -> list[list[str]]:
        """Return the names of the tags with a non-zero entry in each row of Y (n×D)."""
        self._check_fitted()
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
        """Return the tags as shown, in the order of the columns, as an array of str, (D,)."""
        return np.array(self.names_, dtype=object)

    def index(self, name: str) -> int:
        """Return the column of a tag, given in any spelling or as an alias."""
        pairs = list(self._reader().tags_of([name], 0))
        key = pairs[0][0] if pairs else ""
        if key not in self._columns:
            raise InvalidInput(*self._missing_message(key, name))
        return self._columns[key]

    def _missing_message(self, key: str, name: str) -> list[str | Parameter]:
        """Return the parts of a message that says why a tag is missing."""
        if key in self._excluded():
            return [f"The tag {name!r} is excluded. Leave it out of exclude, and fit again."]
        if key in self._images:
            n_images = count(self._images[key], "image")
            min_count = Parameter("min_count", self.min_count)
            return [
                f"The tag {name!r} was dropped: it is on {n_images}, fewer than ",
                min_count,
                ". Lower ",
                Parameter("min_count"),
                ".",
            ]
        close = difflib.get_close_matches(key, self._columns, n=3)
        names = ", ".join(repr(self._names[self._columns[k]]) for k in close)
        hint = f"Similar tags: {names}." if names else "No tag is similar to it."
        size = count(len(self._names), "tag")
        return [f"The tag {name!r} is not in the vocabulary of {size}. {hint}"]

    # --- contents ------------------------------------------------------------------------

    @property
    def names_(self) -> list[str]:
        """The tags as shown, in the order of the columns."""
        self._check_fitted()
        if not self.leaf_only:
            return list(self._names)
        keys = [leaf_of(key) for key in self._columns]
        counts = Counter(keys)
        return [
            self._leaf(name) if counts[key] == 1 else name
            for key, name in zip(keys, self._names, strict=True)
        ]

    def _leaf(self, name: str) -> str:
        separators = [self.separator] if isinstance(self.separator, str) else self.separator or ()
        ends = (name.rpartition(separator)[2] for separator in separators)
        return min(ends, key=len, default=name).strip()

    @property
    def counts_(self) -> np.ndarray:
        """Number of images with each tag, in the order of the columns, shape (D,)."""
        self._check_fitted()
        return np.array([self._images[key] for key in self._columns], dtype=np.int64)

    @property
    def dropped_(self) -> dict[str, int]:
        """Tags on fewer than `min_count` images, most frequent first, with their counts."""
        self._check_fitted()
        left_out = set(self._columns) | self._excluded()
        dropped = [(-n, key) for key, n in self._images.items() if key not in left_out]
        return {self._display_name(key): -n for n, key in sorted(dropped)}

    @property
    def excluded_(self) -> dict[str, int]:
        """Tags of `exclude` in their spelling there, and their numbers of images."""
        reader = self._reader()
        keys = {tag: next(iter(reader.tags_of([tag], 0)), ("",))[0] for tag in _tags(self.exclude)}
        return {tag: self._images.get(key, 0) for tag, key in keys.items()}

    @property
    def plurals_(self) -> list[tuple[str, str]]:
        """Pairs of singular and plural tags that `merge_plurals` would merge."""
        self._check_fitted()
        words: dict[str, str] = {}
        for key, name in zip(self._columns, self._names, strict=True):
            words.setdefault(leaf_of(key), self._leaf(name))
        return [(words[singular], words[plural]) for singular, plural in plural_pairs(words)]

    def describe(self) -> list[str]:
        """Describe this vocabulary in a few sentences."""
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


def _check_lists(tag_lists: TagLists) -> list[Iterable[str] | None]:
    if isinstance(tag_lists, (str, bytes, Mapping)) or not isinstance(tag_lists, Iterable):
        raise InvalidInput(
            f"Expected one list of tags per image; found {type(tag_lists).__name__}. Pass a list "
            "of lists, with None or [] for an image without tags."
        )
    return list(tag_lists)


def _tags(row: Iterable[str] | None) -> Iterable[str]:
    """Return the tags of a row, which may be an array without a truth value."""
    return () if row is None else row


def _materialise(row: Iterable[str] | None) -> Iterable[str] | None:
    """Return a row that can be read twice; reading it reports an invalid row."""
    if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
        return row
    return list(row)
