"""Tags that are suggested by their names."""

from __future__ import annotations

__all__ = ["words_of"]


def words_of(vocabulary: str) -> list[str]:
    """The tags of a file, or some hundred common ones."""
    if vocabulary == "common":
        from tagkin.tag_meanings import common_tags

        return list(common_tags())
    from tagkin.collection import read_tag_list

    return read_tag_list(vocabulary)
