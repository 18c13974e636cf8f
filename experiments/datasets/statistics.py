"""Statistics of a dataset: the paper's table, and how labels and tags are spread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse

__all__ = ["Statistics", "Summary", "statistics_table"]


class Summary(NamedTuple):
    """Mean, median and largest of counts; the mean without those that are 0; how many are 0."""

    mean: float
    median: float
    max: int
    mean_above_zero: float
    n_zero: int

    @classmethod
    def of(cls, counts: np.ndarray) -> Self:
        """The summary of counts, shape (n,); all 0 where there are none."""
        some = counts[counts > 0]
        if not some.size:
            return cls(0.0, 0.0, 0, 0.0, len(counts))
        return cls(
            mean=float(counts.mean()),
            median=float(np.median(counts)),
            max=int(counts.max()),
            mean_above_zero=float(some.mean()),
            n_zero=len(counts) - some.size,
        )

    @classmethod
    def of_rows(cls, matrix: scipy.sparse.csr_array) -> Self:
        """The summary of the numbers of entries in the rows of a label matrix."""
        return cls.of(np.asarray((matrix != 0).sum(axis=1)).ravel())

    @classmethod
    def of_columns(cls, matrix: scipy.sparse.csr_array) -> Self:
        """The summary of the numbers of entries in the columns of a label matrix."""
        return cls.of(np.asarray((matrix != 0).sum(axis=0)).ravel())


@dataclass(frozen=True)
class Statistics:
    """What a dataset holds, in numbers.

    `tags_per_image` is of the images that users were asked to tag; it and `images_per_tag`
    are None where the dataset has no tags.
    """

    name: str
    n_images: int
    n_train: int
    n_test: int
    n_labels: int
    n_tags: int
    labels_per_image: Summary
    images_per_label: Summary
    tags_per_image: Summary | None
    images_per_tag: Summary | None

    def markdown(self) -> str:
        """The statistics as a Markdown table of two columns."""
        rows = [
            ("images", f"{self.n_images:,}"),
            ("training images", f"{self.n_train:,}"),
            ("test images", f"{self.n_test:,}"),
            ("labels", f"{self.n_labels:,}"),
            ("tags", f"{self.n_tags:,}" if self.n_tags else "–"),
            *_spread("labels per image", self.labels_per_image, "images without a label"),
            *_spread("images per label", self.images_per_label, "labels on no image"),
            *_spread("tags per image", self.tags_per_image, "images without a tag"),
            *_spread("images per tag", self.images_per_tag, "tags on no image"),
        ]
        lines = [f"| {self.name} | |", "|---|---:|", *(f"| {key} | {v} |" for key, v in rows)]
        return "\n".join(lines)


def _spread(title: str, summary: Summary | None, zero: str) -> list[tuple[str, str]]:
    if summary is None:
        return []
    numbers = f"{summary.mean:,.2f} / {summary.median:,g} / {summary.max:,}"
    return [(f"{title}: mean / median / most", numbers), (zero, f"{summary.n_zero:,}")]


def statistics_table(statistics: Iterable[Statistics]) -> str:
    """The paper's table of datasets, as Markdown: a row for each dataset.

    Parameters
    ----------
    statistics : iterable of Statistics

    Returns
    -------
    table : str
    """
    head = ["Dataset", "Images", "Training", "Test", "Labels", "Tags", "Labels/image", "Tags/image"]
    lines = [f"| {' | '.join(head)} |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for found in statistics:
        tags = found.tags_per_image
        cells = [
            found.name,
            *(f"{n:,}" for n in (found.n_images, found.n_train, found.n_test, found.n_labels)),
            "–" if tags is None else f"{found.n_tags:,}",
            f"{found.labels_per_image.mean:.2f}",
            "–" if tags is None else f"{tags.mean:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
