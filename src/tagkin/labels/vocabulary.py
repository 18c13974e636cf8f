"""Tag names and their columns in a label matrix."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Annotated, Self

import numpy as np
import scipy.sparse

from tagkin.errors import InvalidInput, Parameter
from tagkin.labels.spelling import most_frequent
from tagkin.labels.tag_reader import TagReader, Wholes
from tagkin.records.forms import storable
from tagkin.records.parameters import HasParameters
from tagkin.records.rules import Table, Texts, Whole
from tagkin.wording import count

__all__ = ["Vocabulary"]

TagLists = Iterable[Iterable[str] | None]


@storable
class Vocabulary(HasParameters):
    """Tags ↔ columns of a sparse label matrix Y (images × tags).

    Tags that differ only in case, Unicode form or white space are the same tag, shown in its most
    frequent spelling (the first seen in a tie). Columns are in the order of the normalised tags.

    Parameters
    ----------
    min_count : int, default 1
        Tags on fewer images get no column; ``dropped_`` lists them.
    separator : str or None
        Separator of the levels of hierarchical tags, such as "|" in ``animal|dog``. None means that
        tags have no levels.
    imply_parents : bool, default True
        Whether ``animal|dog`` also adds the tag ``animal`` to the image.
    merge_levels : bool, default False
        Whether ``dog`` and ``animal|dog`` are the same tag if no other tag ends in ``dog``. The
        more frequent form is shown.

    Attributes
    ----------
    names_ : list of str
        The tags as shown, in the order of the columns.
    counts_ : int array of shape (D,)
        Number of images with each tag.
    dropped_ : dict of str to int
        Tags without a column, and their numbers of images.
    plurals_ : list of (str, str)
        Tags that are singular and plural of the same English word.
    n_images_ : int
        Number of images that `fit` read.
    unknown_ : dict of str to int
        Tags in the last `transform` that `fit` did not read, and their numbers of images.

    Examples
    --------
    >>> vocabulary = Vocabulary()
    >>> Y = vocabulary.fit_transform([["Dog", "beach"], ["dog"], None, ["Dog"]])
    >>> vocabulary.names_, vocabulary.counts_.tolist()
    (['beach', 'Dog'], [1, 3])
    >>> Y.toarray().tolist()
    [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self,
        min_count: int = 1,
        *,
        separator: str | None = None,
        imply_parents: bool = True,
        merge_levels: bool = False,
    ):
        self.min_count = min_count
        self.separator = separator
        self.imply_parents = imply_parents
        self.merge_levels = merge_levels

    # By normalised tag, dropped tags included: number of images, and the tag as shown.
    _images: Annotated[dict[str, int], Table(Whole())]
    _shown: dict[str, str]
    # normalised, in the order of the columns
    _columns: Annotated[list[str], Texts("D")]
    # fields of `Wholes`
    _above: dict[str, list[str]]
    _n_implied: Annotated[dict[str, int], Table(Whole())]
    n_images_: Annotated[int, Whole()]
    unknown_: Annotated[dict[str, int], Table(Whole())]

    def _check_fitted(self) -> None:
        if not hasattr(self, "_columns"):
            from sklearn.exceptions import NotFittedError  # which scikit-learn's users catch

            raise NotFittedError("This Vocabulary is not fitted yet. Call fit(tag_lists) first.")

    def _reader(self) -> TagReader:
        self._check_fitted()
        wholes = Wholes(self._above, self._n_implied)
        return TagReader(self.separator, self.imply_parents, wholes)

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
        if not isinstance(self.min_count, Integral) or self.min_count < 1:
            raise InvalidInput(
                Parameter("min_count"), f" must be a whole number from 1; found {self.min_count!r}."
            )
        lists = [_materialise(row) for row in _check_lists(tag_lists)]
        reader, wholes = TagReader(self.separator, self.imply_parents), Wholes({}, {})
        rows = [list(reader.tags_of(row, i)) for i, row in enumerate(lists)]
        if self.merge_levels:
            wholes = reader.find_wholes(Counter(tag for row in lists for tag in set(row or ())))
            reader = TagReader(self.separator, self.imply_parents, wholes)
            rows = [list(reader.tags_of(row, i)) for i, row in enumerate(lists)]
        images: Counter[str] = Counter()
        spellings: dict[str, Counter[str]] = {}
        for row in rows:
            images.update(dict(row).keys())
            for key, spelling in row:
                spellings.setdefault(key, Counter())[spelling] += 1
        self._images = dict(images)
        self._shown = {key: most_frequent(spellings[key]) for key in images}
        self._columns = sorted(key for key, n in images.items() if n >= self.min_count)
        self._above, self._n_implied = dict(wholes.above), dict(wholes.n_implied)
        self.n_images_, self.unknown_ = len(rows), {}
        return self

    def check_stored(self) -> None:
        """Reject inconsistent tables, which no `fit` produces."""
        self._reader()
        known = self._images.keys() & self._shown.keys()
        if not known >= set(self._columns) or len(set(self._columns)) < len(self._columns):
            raise InvalidInput("a tag has a column and was on no image, or has two columns")
        if known != self._images.keys():
            raise InvalidInput("a tag has no spelling")
        if any(n > len(self._above.get(key, ())) for key, n in self._n_implied.items()):
            raise InvalidInput("a tag implies more levels than are above it")

    # --- tags to columns and back --------------------------------------------------------

    def transform(self, tag_lists: TagLists) -> scipy.sparse.csr_array:
        """Return the float32 label matrix Y (images × tags): 1 if an image has a tag, else 0.

        Tags that `fit` did not read are counted in ``unknown_``. Dropped tags have no column
        either; ``dropped_`` lists them.
        """
        reader = self._reader()
        columns = {key: i for i, key in enumerate(self._columns)}
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
            indices.extend(sorted(columns[key] for key in tags if key in columns))
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

    def index(self, name: str) -> int:
        """Return the column of a tag, given in any spelling."""
        pairs = list(self._reader().tags_of([name], 0))
        key = pairs[0][0] if pairs else ""
        if key not in self._columns:
            raise InvalidInput(*self._missing_message(key, name))
        return self._columns.index(key)

    def _missing_message(self, key: str, name: str) -> list[str | Parameter]:
        """Return the parts of a message that says why a tag is missing."""
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
        names = ", ".join(repr(self._shown[k]) for k in close)
        hint = f"Similar tags: {names}." if names else "No tag is similar to it."
        size = count(len(self._columns), "tag")
        return [f"The tag {name!r} is not in the vocabulary of {size}. {hint}"]

    # --- contents ------------------------------------------------------------------------

    @property
    def names_(self) -> list[str]:
        """The tags as shown, in the order of the columns."""
        self._check_fitted()
        return [self._shown[key] for key in self._columns]

    @property
    def counts_(self) -> np.ndarray:
        """Number of images with each tag, in the order of the columns, shape (D,)."""
        self._check_fitted()
        return np.array([self._images[key] for key in self._columns], dtype=np.int64)

    @property
    def dropped_(self) -> dict[str, int]:
        """Tags on fewer than `min_count` images, most frequent first, with their counts."""
        self._check_fitted()
        dropped = self._images.keys() - set(self._columns)
        ordered = sorted(dropped, key=lambda key: (-self._images[key], key))
        return {self._shown[key]: self._images[key] for key in ordered}

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


def _materialise(row: Iterable[str] | None) -> Iterable[str] | None:
    """Return a row that can be read twice; reading it reports an invalid row."""
    if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
        return row
    return list(row)
