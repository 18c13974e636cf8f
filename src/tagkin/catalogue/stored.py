"""Suggestions that a catalogue keeps, as an annotator gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tagkin.catalogue.catalogue import Catalogue
from tagkin.catalogue.learning import carried_tags
from tagkin.catalogue.review import OnPhotograph, suggestions_for

if TYPE_CHECKING:
    from tagkin.annotator import PhotoSuggestions
    from tagkin.annotator.suggestions import TagSuggestion

__all__ = ["stored_suggestions"]


def stored_suggestions(catalogue: Catalogue, run: int) -> list[PhotoSuggestions]:
    """What a run suggested and nobody has decided on, photograph by photograph.

    Kin are those that were noted and are still there. Shares that nobody noted are 0.
    """
    from tagkin.annotator.suggestions import PhotoSuggestions

    every = {one.content: one for one in carried_tags(catalogue)}
    tags = {content: tuple(one.tags) for content, one in every.items()}
    rows = catalogue.rows("SELECT DISTINCT content FROM suggestions WHERE run = ?", (run,))
    contents = {content for (content,) in rows}
    return [
        PhotoSuggestions(
            one.file,
            tuple(
                _as_given(catalogue, found, tags)
                for found in suggestions_for(catalogue, content)
                if found.run == run
            ),
            tags[content],
        )
        for content, one in every.items()
        if content in contents
    ]


def _as_given(
    catalogue: Catalogue, one: OnPhotograph, tags: dict[int, tuple[str, ...]]
) -> TagSuggestion:
    from tagkin.annotator.suggestions import Kin, TagSuggestion

    kin = tuple(
        Kin(catalogue.absolute(k.path), k.share, tags.get(k.content, ()))
        for k in one.kin
        if k.path is not None
    )
    shares = one.name_share or 0.0, one.readout_share or 0.0
    return TagSuggestion(one.tag, one.confidence, kin, *shares)
