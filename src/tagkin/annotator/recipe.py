"""A recipe: how a space and a method are learned from features and labels."""

from __future__ import annotations

from dataclasses import dataclass

from tagkin.errors import InvalidInput
from tagkin.space import SemanticSpace
from tagkin.transfer import KinReadout, NeighborTransfer

__all__ = ["Recipe", "check_settings", "usual_recipe"]

# κ of the default space. From 1 to 2, MAP differs by .3 at most (100 to 12,000 images of COCO,
# Flickr8k and photos/); smaller values cost more with noisy features, and an audit finds less.
_REGULARIZATION = 2.0


@dataclass(frozen=True)
class Recipe:
    """Configuration of a fit. Without a space, neighbours are searched among the features."""

    space: SemanticSpace | None
    method: NeighborTransfer


def check_settings(space: object, method: object) -> None:
    """Reject a space or a method that cannot be used."""
    if not isinstance(space, SemanticSpace | None):
        raise InvalidInput(f"space must be a SemanticSpace; found {space!r}.")
    if not isinstance(method, NeighborTransfer | None):
        raise InvalidInput(
            "method must use neighbours, which tell which images support a label, such as "
            f"tagkin.paper.TagProp(); found {method!r}."
        )


def usual_recipe(
    space: SemanticSpace | None, method: NeighborTransfer | None, random_state: int | None
) -> Recipe:
    """Return a recipe with the default space and method if none is passed."""
    check_settings(space, method)
    if space is None:
        space = SemanticSpace(_REGULARIZATION, random_state=random_state)
    if method is None:
        # votes and a read-out err differently: together they rank best on small and large
        # collections alike (docs/results)
        method = KinReadout(random_state=random_state)
    return Recipe(space, method)
