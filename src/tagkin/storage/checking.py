"""A model that was built from its files, checked before anything uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tagkin.errors import DamagedModel
from tagkin.storage.fields import Dimensions, Refused
from tagkin.storage.forms import is_model, stored_form
from tagkin.storage.pipelines import is_pipeline, parts_of

__all__ = ["check_model", "check_values"]


def check_model(model: Any, folder: Path) -> None:
    """Refuse a model that is none, or that holds what it cannot; the error says what and where."""
    parts = parts_of(model)
    if not parts:
        raise DamagedModel(f"{folder} holds a pipeline without steps.")
    for part in parts:
        if not is_model(part):
            raise DamagedModel(f"{folder} holds {type(part).__name__}, which is not a model.")
    try:
        check_values(model)
    except Refused as refusal:
        raise DamagedModel(
            f"{folder} is damaged: {refusal}. Restore it from a copy, or save the model again."
        ) from refusal


def check_values(model: Any) -> None:
    """Refuse (`Refused`) what a model, or a step of a pipeline of models, cannot hold."""
    passed_on: int | None = None
    parts = parts_of(model)
    for i, part in enumerate(parts):
        form = stored_form(part)
        assert form is not None
        sizes = Dimensions()
        where = f"step {i + 1}" if is_pipeline(model) else "model"
        form.check(part, sizes, where)
        if passed_on is not None and form.takes:
            sizes.seen(form.takes, passed_on, f"{where} from the one before")
        if part is not parts[-1] and not form.gives:
            raise Refused(where, "passes nothing on to the next step")
        passed_on = sizes.size(form.gives) if form.gives else None
