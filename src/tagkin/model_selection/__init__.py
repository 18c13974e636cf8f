"""How good a method is on images that it has not seen, and which parameters are best."""

from tagkin.model_selection.selection import (
    Choice,
    Trial,
    choose,
    cross_validate,
    held_out_scores,
)

__all__ = ["Choice", "Trial", "choose", "cross_validate", "held_out_scores"]
