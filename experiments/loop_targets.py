"""What is measured of evenings of answers: targets, and other ways to work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.evening import Evening, Opened
from experiments.persons import clicked, keys_to_type
from tagkin.wording import count

__all__ = [
    "SHARE",
    "Played",
    "Row",
    "actions_until",
    "answer_photographs",
    "compare_forecasts",
    "list_half_tagged",
    "list_personal",
    "list_rows",
    "percent",
    "reach",
    "span",
    "type_tags",
]

SHARE = 0.7
PERSONAL = ((0.5, 0.10), (0.8, 0.26))
"""Shares of the missing tags, and the most actions per right tag until then, if times are known."""
INPUTS = {"name": "by name", "picture": "by kin and picture", "time": "by moment"}
LEAST_BY_INPUT = 0.3  # confidence of the tiles that are compared by what suggests them
ENOUGH_NO = 120  # answers, two pages
FEW = 20  # tiles that are compared


class Played(NamedTuple):
    """The evenings of a draw, by the ways to ask."""

    opened: Opened
    evenings: dict[str, Evening]

    @property
    def evening(self) -> Evening:
        """The evening as the page asks."""
        return self.evenings["as on the page"]


Row = tuple[str, str, bool | None]
"""A target, what was measured, and whether the target is met; None if there was too little."""


def reach(evening: Evening, n_right: float) -> int | None:
    """Return the number of pages until so many right tags are there; None if they never are."""
    pages = int(np.searchsorted(np.cumsum(evening.right), n_right)) + 1
    return pages if pages <= len(evening.right) else None


def list_rows(draws: Sequence[Played], n_pages: int) -> list[Row]:
    """List the targets of a set, the means over its draws, and whether each mean meets its target.

    The range over draws follows in brackets.
    """
    shares, found = _below_the_line(draws), [_found(played) for played in draws]
    return [
        *_list_tiles(draws),
        *_list_fits(draws),
        _limit_actions(draws, SHARE, 0.65),
        (
            f"pages all below the line until {percent(SHARE)}: at most half of the actions",
            f"{span(shares)} of the actions",
            bool(np.mean(shares) <= 0.5),
        ),
        (
            f"missing tags found in at most {n_pages} pages: at least 45 %",
            span(found),
            bool(np.mean(found) >= 0.45),
        ),
    ]


def list_personal(draws: Sequence[Played]) -> list[Row]:
    """List the targets of a collection with times, as `list_rows` does."""
    limits = [_limit_actions(draws, *limit) for limit in PERSONAL]
    return [*limits, *_list_tiles(draws), *_list_fits(draws)[:-1]]


def list_half_tagged(draws: Sequence[Played]) -> list[Row]:
    """List the targets where many photographs are tagged completely, as `list_rows` does."""
    tiles = [played.evening.tiles for played in draws]
    asked = [np.concatenate([page.is_tagged for page in pages]) for pages in tiles]
    later = [one[np.searchsorted(np.cumsum(one), ENOUGH_NO) + 1 :] for one in asked]
    shares = [float(one.mean()) for one in later if len(one)]
    return [
        (
            f"tiles on completely tagged photographs, after {ENOUGH_NO} of them: at most 5 %",
            f"{span(shares)}; {span([float(one.mean()) for one in asked])} of all tiles",
            not shares or bool(np.mean(shares) <= 0.05),
        ),
        *_list_tiles(draws)[2:3],
    ]


def _list_tiles(draws: Sequence[Played]) -> list[Row]:
    """Return the rows about percentages: in bands, by what suggests, and about forecasts."""
    evenings = [played.evening for played in draws]
    ratios = [ratio for evening in evenings if (ratio := compare_forecasts(evening)) is not None]
    return [
        *(
            _compare_tiles(evenings, low, high)
            for low, high in ((0.7, 0.8), (0.8, 0.9), (0.5, 0.9))
        ),
        *(_compare_tiles(evenings, LEAST_BY_INPUT, 1.01, name) for name in INPUTS),
        (
            "forecasts for “the next ten minutes”: within 15 % of the right tags that came",
            f"{span(ratios)} times what came",
            not ratios or bool(abs(np.mean(ratios) - 1) <= 0.15),
        ),
    ]


def _list_fits(draws: Sequence[Played]) -> list[Row]:
    """Return the rows about open suggestions and new photographs after a fit."""
    evenings, rows = [played.evening for played in draws], list[Row]()
    firsts = [evening.refits[0] for evening in evenings if evening.refits]
    if firsts:
        before, after = (np.mean([f[i] for f in firsts]) for i in (1, 3))
        lost = [first.right_before - first.right_kept for first in firsts]
        rows.append(
            (
                "open right suggestions at the first fit: none is lost",
                f"{before:,.0f} → {after:,.0f}; {span(lost, '.0f')} lost",
                not any(lost),
            )
        )
    likely = [[n for _, n in evening.likely_new] for evening in evenings]
    start, end = np.mean([[one[0], one[-1]] for one in likely], axis=0)
    fewest = [min(one[1:], default=one[0]) / max(one[0], 1) for one in likely]
    rows.append(
        (
            "right suggestions at 50 % on new photographs: after no fit fewer than at the start",
            f"{start:,.0f} → {end:,.0f} at the end; at least {span(fewest, '.3f')} of the start",
            bool(np.mean(fewest) >= 1),
        )
    )
    return rows


def _limit_actions(draws: Sequence[Played], share: float, most: float) -> Row:
    """Return the row about the actions until a share of the missing tags is there."""
    ratios = [ratio for one in draws if (ratio := actions_until(one, share)) is not None]
    text = span(ratios, ".3f") if ratios else "not reached"
    if 0 < len(ratios) < len(draws):
        text += f" in {len(ratios)} of {len(draws)} draws"
    is_fine = len(ratios) == len(draws) and bool(np.mean(ratios) <= most)
    return (
        f"actions per right tag until {percent(share)}: at most {f'{most:.2f}'.lstrip('0')}",
        text,
        is_fine,
    )


def actions_until(
    played: Played, share: float, way: str = "as on the page", *, has_headings: bool = True
) -> float | None:
    """Return the actions per right tag until a share of the missing tags is there, or None."""
    evening = played.evenings[way]
    pages = reach(evening, share * played.opened.collection.n_missing)
    actions = evening.actions if has_headings else evening.clicks
    return None if pages is None else sum(actions[:pages]) / sum(evening.right[:pages])


def _below_the_line(draws: Sequence[Played]) -> list[float]:
    """Return the share of the actions on pages all below the line until SHARE, by draw."""
    shares = []
    for played in draws:
        pages = reach(played.evening, SHARE * played.opened.collection.n_missing)
        actions = np.array(played.evening.actions[:pages])
        shares.append(float(actions[played.evening.unlikely[:pages]].sum() / actions.sum()))
    return shares


def _found(played: Played) -> float:
    """Return the share of the missing tags that the evening found."""
    c = played.opened.collection
    return sum(played.evening.right) / (c.n_missing + c.n_never)


def percent(share: float) -> str:
    """Write a share, such as "70 %"."""
    return f"{100 * share:.0f} %"


def span(values: Sequence[float], form: str = ".2f") -> str:
    """Return the mean and, if values differ, their range."""
    if not values:
        return "none"
    mean, low, high = (format(f(values), form) for f in (np.mean, min, max))
    return mean if low == high else f"{mean} ({low} to {high})"


def _compare_tiles(
    evenings: Sequence[Evening], low: float, high: float, of_input: str | None = None
) -> Row:
    """Compare percentages with the share of right ones, over the tiles of all draws.

    `of_input` names what contributes most to the suggestions of the tiles; default: any.
    """
    band = f"{percent(low)} to {percent(high)}" if high <= 1 else f"{percent(low)} and more"
    which = f" {INPUTS[of_input]}" if of_input else ""
    title = f"tiles{which} at {band}: mean percentage and share of right ones within .05"
    draws = []
    for evening in evenings:
        said, right, _, inputs = (
            np.concatenate(parts) for parts in zip(*evening.tiles, strict=True)
        )
        mask = (low <= said) & (said < high)
        if of_input is not None:
            mask &= inputs == of_input
        draws.append(np.array([said[mask], right[mask]]))
    tiles = np.concatenate(draws, axis=1)
    if tiles.shape[1] < (FEW if of_input else 1):
        return title, "none" if not tiles.size else "few", None
    said, right = tiles.mean(axis=1)
    gaps = [float(np.diff(draw.mean(axis=1))[0]) for draw in draws if draw.size]
    spread = f"; gap {min(gaps):+.2f} to {max(gaps):+.2f}" if len(gaps) > 1 else ""
    text = f"{said:.2f}, {right:.2f} ({count(tiles.shape[1], 'tile')}{spread})"
    return title, text, bool(abs(said - right) <= 0.05)


def compare_forecasts(evening: Evening) -> float | None:
    """Return all forecasts over what came, where that many answers came; None if nowhere."""
    sizes = np.array([len(page.right) for page in evening.tiles])
    said_sum = came_sum = 0.0
    for start, n_soon, said in evening.forecasts:
        before = np.cumsum(sizes[start:]) - sizes[start:]
        if sizes[start:].sum() >= n_soon:
            parts = np.clip((n_soon - before) / sizes[start:], 0, 1)
            said_sum += said
            came_sum += float(parts @ np.array(evening.right[start:]))
    return said_sum / came_sum if came_sum else None


# --- other ways to work ---------------------------------------------------------------------


def type_tags(played: Played) -> float:
    """Return the keys per tag if every tag is typed, with completion and a key per photograph."""
    c = played.opened.collection
    keys, truth = keys_to_type(c.names or []), c.truth[c.n_tagged :]
    return float((len(truth) + (truth @ keys).sum()) / truth.sum())


def answer_photographs(played: Played) -> float | None:
    """Return the actions per right tag until SHARE, with a list of tags per photograph.

    Lists are cut where they pay most, and the best comes first. None if all lists together have too
    few right tags.
    """
    c, P = played.opened.collection, played.opened.suggested.confidences
    lists = []
    for row in range(c.n_tagged, len(c.X)):
        order = np.argsort(-P[row], kind="stable")[: np.count_nonzero(P[row])]
        while len(order):
            right = np.cumsum(P[row, order])
            wrong = np.arange(1, len(order) + 1) - right
            value = right / (1 + np.minimum(right, wrong))
            n = int(np.argmax(value)) + 1
            lists.append((value[n - 1], c.truth[row, order[:n]]))
            order = order[n:]
    lists.sort(key=lambda one: -one[0])
    right = np.cumsum([int(truth.sum()) for _, truth in lists])
    actions = np.cumsum([clicked(truth) for _, truth in lists])
    last = int(np.searchsorted(right, SHARE * c.n_missing))
    return float(actions[last] / right[last]) if last < len(right) else None
