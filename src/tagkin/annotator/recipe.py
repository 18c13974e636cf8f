"""A recipe: how a space and a method are learned from features and labels."""

from __future__ import annotations

from dataclasses import dataclass

from tagkin.errors import InvalidInput
from tagkin.space import SemanticSpace
from tagkin.transfer import KinReadout, NeighborTransfer

__all__ = ["CHOOSING", "Choosing", "Recipe", "check_settings", "usual_recipe"]


@dataclass(frozen=True)
class Choosing:
    """Numbers of the choice of κ and of votes on held-out images."""

    regularizations: tuple[float, ...] = (0.03, 0.1, 0.5, 2.0, 8.0, 30.0)
    """Values of κ. Around the default, precision falls by 4 % and more from a value to the next
    (COCO, Flickr8k, 3,000 to 10,000 images)."""
    temperatures: tuple[float, ...] = (5.0, 10.0, 20.0)
    """Values of τ, beside that of the method."""
    neighbors: tuple[float, ...] = (1 / 4, 1 / 2)
    """Smaller numbers of neighbours, as shares of `n_neighbors`."""
    gained: float = 0.002
    """Share of MAP that other votes must gain to replace the usual ones: less is chance."""
    most_known: int = 12_000
    """Images for the read-out that compares values of κ, at most."""
    most_held_out: int = 6000
    """Held-out images to compare on, at most."""
    landmarks: float = 0.75
    """Landmarks of a fold's space, as a share of the landmarks of the whole space. A fold has two
    thirds of the images or more, and its solution takes less than half the time. Held-out images
    rank nearly as well, and confidences are as good; with a share of one half they were a point too
    low."""
    lost: float = 0.0015
    """Fewer landmarks regularise, too: the larger of two values of κ loses this share of its
    precision against the smaller one (.2 to .5 % with half of the landmarks, on COCO and
    Flickr8k)."""
    level: float = 0.015
    """If the larger of the first two values of κ is worse by less than this share, no smaller one
    is better."""


CHOOSING = Choosing()


@dataclass(frozen=True)
class Recipe:
    """Configuration of a fit. Without a space, neighbours are searched among the features."""

    space: SemanticSpace | None
    method: NeighborTransfer
    regularizations: tuple[float, ...] = ()
    """Values of κ to choose from on held-out images, with the votes of a `KinReadout`. If empty,
    space and method are used unchanged."""


def check_settings(space: object, method: object) -> None:
    """Reject a space or a method that cannot be used."""
    if not isinstance(space, SemanticSpace | None):
        raise InvalidInput(f"space must be a SemanticSpace; found {space!r}.")
    if not isinstance(method, NeighborTransfer | None):
        raise InvalidInput(
            "method must use neighbours, which tell which images support a label, such as "
            f"tagkin.TagProp(); found {method!r}."
        )


def usual_recipe(
    space: SemanticSpace | None, method: NeighborTransfer | None, random_state: int | None
) -> Recipe:
    """Return a recipe with the default space and method if none is passed."""
    check_settings(space, method)
    values: tuple[float, ...] = ()
    if space is None:
        space = SemanticSpace(random_state=random_state)
        values = (
            CHOOSING.regularizations if method is None or isinstance(method, KinReadout) else ()
        )
    elif method is None:
        values = (space.regularization,)
    if method is None:
        # votes and a read-out err differently: together they rank best on small and large
        # collections alike (docs/results)
        method = KinReadout(random_state=random_state)
    return Recipe(space, method, values)
