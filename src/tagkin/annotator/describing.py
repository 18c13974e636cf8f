"""Describe models in sentences and numbers."""

from __future__ import annotations

from typing import Any

from tagkin.annotator.grouping import count_grouped, describe_groups
from tagkin.annotator.model import Model
from tagkin.wording import count, denoising_text

__all__ = ["describe_model", "describe_photographs", "summarize"]


def describe_model(model: Model) -> list[str]:
    """Return a few sentences that describe a model of images."""
    together = describe_groups(model.groups, "image", "groups")
    return [
        _describe_size(model, "labelled image", "label"),
        *([f"Held out together: {together}."] if together else ()),
        *_describe_parts(model),
    ]


def describe_photographs(model: Model, backbone: str) -> list[str]:
    """Return a few sentences that describe a model of photographs."""
    together = describe_groups(model.groups)
    return [
        _describe_size(model, "tagged photograph", "tag"),
        *([f"Held out as a whole: {together}."] if together else ()),
        f"Reads photographs with {backbone}.",
        *_describe_parts(model),
    ]


def _describe_size(model: Model, image: str, label: str) -> str:
    n, n_labels = model.method.labels.shape
    learned = f"{count(n, image)} and {count(n_labels, label)}"
    return f"Learned from {learned}. Denoised: {denoising_text(model.blend)}."


def _describe_parts(model: Model) -> list[str]:
    parts = (model.space, model.method, model.names, model.calibrator, model.unannotated)
    return [
        *(() if model.vocabulary is None else model.vocabulary.describe()[1:]),
        *(line for part in parts if part is not None for line in part.describe()),
    ]


def summarize(model: Model) -> dict[str, Any]:
    """Return numbers that describe a model of photographs; each tag has its number of them."""
    n_in_series, n_series = count_grouped(model.groups)
    counts = (int(n) for n in model.method.labels.sum(axis=0))
    assert model.vocabulary is not None  # tags are lists of tags
    return {
        "photographs": model.n_images,
        "in_series": n_in_series,
        "series": n_series,
        "tags": dict(zip(model.vocabulary.names_, counts, strict=True)),
        "dropped": dict(model.vocabulary.dropped_),
        "denoised": float(model.blend),
    }
