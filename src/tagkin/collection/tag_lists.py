"""Merge the lists of tags in the files of a photograph, three ways.

Programs keep the tags of a photograph in several lists, and each program writes only some of them.
Without an earlier state, the tags are the union of all lists. With the lists as they were last
seen, a list that changed tells what a person added or removed in another program, and a list that
did not change tells nothing new. So a tag that was removed in one list stays removed, although
other lists still have it; these remains are *stale*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tagkin.collection.levels import INTERNAL, fold, last_level, tidy

__all__ = [
    "IPTC",
    "WINDOWS",
    "FileLists",
    "Lists",
    "MergedTags",
    "Removal",
    "Seen",
    "describe_lists",
    "is_in_step",
    "merge_lists",
    "tags_to_drop",
]

IPTC, WINDOWS = "IPTC:Keywords", "IFD:XPKeywords"
"""Lists inside photographs that are not XMP."""
_SUBJECT, _TAGS_LIST, _HIERARCHICAL = "dc:subject", "digiKam:TagsList", "lr:hierarchicalSubject"
_FLAT = {_SUBJECT, IPTC, WINDOWS}  # names without their parents
_SLASHED = {_TAGS_LIST, "MicrosoftPhoto:LastKeywordXMP"}  # where / may be in a name or between two
_READ_FIRST = (  # programs read the first of their lists that is there, and write all of them
    *(_TAGS_LIST, "MicrosoftPhoto:LastKeywordXMP", _HIERARCHICAL, "mediapro:CatalogSets"),
    *(_SUBJECT, IPTC, WINDOWS),
)
_READ_BY_IMMICH = (_TAGS_LIST, _HIERARCHICAL, IPTC)
_CUT = range(61, 65)  # bytes at which IPTC cuts a keyword, at the end of a character
_WRITERS = {
    _TAGS_LIST: "the list of digiKam and Immich",
    _HIERARCHICAL: "the list of Lightroom, darktable and digiKam",
    _SUBJECT: "the list of nearly every program",
    IPTC: "the older list inside photographs",
    WINDOWS: "the list of Windows",
}

Lists = Mapping[str, Sequence[str]]
"""The words in each list of a file, with ``|`` between levels."""
FileLists = Mapping[str, Lists]
"""The lists of each file: the photograph and its RAW files, and sidecars, which end in .xmp."""


class Seen(NamedTuple):
    """The lists of a photograph as they were last seen."""

    files: FileLists
    stale: Collection[str] = ()
    """Tags that some list has, although a person removed them in another list."""


class Removal(NamedTuple):
    """A tag that a person removed in another program, and the lists that lost it."""

    tag: str
    lists: Sequence[tuple[str, str]]
    """Files, and names of lists in them."""


class MergedTags(NamedTuple):
    """The tags of a photograph."""

    tags: dict[str, dict[str, str]]
    """The spelling of each tag in each file that has it with all its levels."""
    stale: list[str]
    """As in `Seen`."""
    removed: list[Removal]
    added: set[str]
    """The tags that a person added in another program."""
    overwritten: Sequence[tuple[str, str]] = ()
    """Files, and names of lists that a program overwrote; other lists keep the tags."""


def describe_lists(names: Iterable[str]) -> str:
    """Return the names of lists with the programs that write them, for people."""
    names = list(dict.fromkeys(names))
    if len(names) == 1 and names[0] in _WRITERS:
        return f"{names[0]}, {_WRITERS[names[0]]}"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def merge_lists(
    now: FileLists, seen: Seen | None = None, *, is_ours: bool = False, is_same: bool = True
) -> MergedTags:
    """Return the tags of a photograph from the lists in its files.

    Parameters
    ----------
    now : lists by file
    seen : Seen, optional
        The lists as they were last seen; without them, the tags are the union of all lists.
    is_ours : bool, default False
        tagkin itself changed the lists, so a tag is there as long as a list has it.
    is_same : bool, default True
        Whether the files are surely the same files as before; otherwise nothing counts as removed.
    """
    current = _Resolution(now)
    added: set[str] = set()
    lost: _Evidence = {}
    overwritten: list[tuple[str, str]] = []
    wanted = set(current.tags)
    if seen is not None:
        former = _Resolution(seen.files)
        stale = set(map(current.respell, seen.stale))
        held = {tag for tag in map(current.respell, former.tags) if tag not in stale}
        came, gone, overwritten = _compare_lists(current, former, held, is_ours)
        added = set(came)
        lost = {tag: gone[tag] for tag in gone if tag in held and tag not in added}
        lost = lost if is_same and not is_ours else {}
        left = held - lost.keys()
        # lists with all levels may be gone; then the name alone is left of a tag
        left |= {current.respell(last_level(tag)) for tag in left if tag not in wanted}
        wanted &= added | left
        added -= held
    names = {fold(last_level(tag)) for tag in wanted if "|" in tag}
    tags = [tag for tag in current.tags if tag in wanted and fold(tag) not in names]
    covered = {name for tag in tags for name in _covered_names(tag)}
    gone_tags = sorted(tag for tag in lost if fold(tag) not in covered)
    removed = [Removal(tag, lost[tag]) for tag in gone_tags]
    stale_now = [tag for tag in current.tags if tag not in tags]
    return MergedTags(current.places(tags), stale_now, removed, added & set(tags), overwritten)


def tags_to_drop(files: FileLists, merged: MergedTags) -> dict[str, list[str]]:
    """Return the stale tags in each file, without names and parents of the photograph's tags."""
    covered = {name for tag in merged.tags for name in _covered_names(tag)}
    dropped = [tag for tag in merged.stale if fold(tag) not in covered]
    resolution = _Resolution(files)
    by_file = {
        file: {tag for name in lists for tag in resolution.of_list(file, name)}
        for file, lists in files.items()
    }
    kept = {file: [tag for tag in dropped if tag in tags] for file, tags in by_file.items()}
    return {file: tags for file, tags in kept.items() if tags}


def is_in_step(files: FileLists, merged: MergedTags, *, is_inside: bool = False) -> bool:
    """Whether every program sees the tags of a photograph in its sidecars, and no others.

    A sidecar with lists needs those that most programs read, and every list needs all tags. With
    `is_inside`, the same of the photograph itself, with or without lists.
    """
    dropped, resolution = tags_to_drop(files, merged), _Resolution(files)
    for file, lists in files.items():
        if not file if is_inside else file.lower().endswith(".xmp") and lists:
            names = {_HIERARCHICAL, _SUBJECT, *lists}
            in_lists = (resolution.of_list(file, name).keys() for name in names)
            if file in dropped or not all(merged.tags.keys() <= tags for tags in in_lists):
                return False
    return True


def _covered_names(tag: str) -> list[str]:
    """Return a tag, its parents, and its last level, without their spelling."""
    levels = fold(tag).split("|")
    return [levels[-1], *("|".join(levels[:n]) for n in range(1, len(levels) + 1))]


def _key(tag: str) -> str:
    return fold(tag).replace("|", "/")


class _Resolution:
    """Which tags the words in all lists stand for.

    A word in a list without levels stands for the tags that end in it. There, programs also repeat
    the parents of a tag, which stand for nothing. Words that differ only in case are one tag.
    """

    def __init__(self, files: FileLists):
        self.files = files
        self._words = {
            (file, name): list(dict.fromkeys(filter(None, map(tidy, words))))
            for file, lists in files.items()
            for name, words in lists.items()
        }
        self._spellings = self._choose_spellings()
        listed = dict.fromkeys(
            self.respell(word)
            for (_, name), words in self._words.items()
            for word in words
            if name not in _FLAT
        )
        self._by_end: dict[str, list[str]] = {}  # for names with / or |
        for tag in listed:
            parts = _key(tag).split("/")
            for n in range(2, len(parts) + 1):
                self._by_end.setdefault("/".join(parts[-n:]), []).append(tag)
        for (_, name), words in self._words.items():
            for word in words if name in _FLAT else ():
                if "|" in word and _key(word) not in self._by_end:
                    listed[self.respell(word)] = None
        internal = {tag for tag in listed if tag.split("|", 1)[0] in INTERNAL}
        own = [tag for tag in listed if tag not in internal]
        self._by_name: dict[str, list[str]] = {}
        for tag in own:
            self._by_name.setdefault(fold(last_level(tag)), []).append(tag)
        self._empty = {fold(t) for tag in internal for t in (tag, *tag.split("|"))}
        parents = {fold(level) for tag in own for level in tag.split("|")[:-1]}
        self._empty |= parents - set(map(fold, own))
        self._whole = self._find_cut_words()
        tags = dict.fromkeys(tag for place in self._words for tag in self.of_list(*place))
        self.tags = sorted(tags, key=lambda tag: "|" not in tag)

    def _choose_spellings(self) -> dict[str, str]:
        """Return tags by their text with / for |, if a list tells which / are in names."""
        flat: list[str] = []
        slashed: list[str] = []
        certain: list[str] = []
        for (_, name), words in self._words.items():
            (flat if name in _FLAT else slashed if name in _SLASHED else certain).extend(words)
        spellings = {_key(word): word for word in (*flat, *certain)}
        # a list may have both a|b and a/b
        self._certain = {fold(word): word for word in reversed(certain)}
        self._slashed = {fold(word): word for word in reversed(slashed)}
        names = [word for word in flat if "/" in word and "|" not in word]
        for word in slashed:
            for name in names:
                start, end = word[: -len(name)], word[-len(name) :]
                if start[-1:] in ("|", "/") and _key(end) == _key(name):
                    spellings.setdefault(_key(word), start + name)
        return spellings

    def _find_cut_words(self) -> dict[str, str]:
        """Return whole words by the words that IPTC cuts from them."""
        whole = {}
        for (_, name), words in self._words.items():
            for word in map(last_level, words if name != IPTC else ()):
                data = word.encode("utf-8", "replace")
                for size in _CUT:
                    if size < len(data):
                        whole[data[:size]] = word
        return {fold(data.decode("utf-8", "ignore")): word for data, word in whole.items()}

    def respell(self, tag: str) -> str:
        """Return a tag as the most certain list spells it."""
        certain = self._certain.get(fold(tag)) or self._spellings.get(_key(tag))
        return certain or self._slashed.get(fold(tag), tag)

    def words(self, file: str, name: str) -> list[str] | None:
        """Return the words of a list, or None if it is not there."""
        return self._words.get((file, name))

    def meaning(self, name: str, word: str) -> list[str]:
        """Return the tags that a word in a list stands for."""
        word = self.respell(self._whole.get(fold(word), word) if name == IPTC else word)
        if name in _FLAT and fold(word) in self._by_name:
            return self._by_name[fold(word)]
        if name in _FLAT and _key(word) in self._by_end:
            return self._by_end[_key(word)]
        return [] if fold(word) in self._empty else [word]

    def of_list(self, file: str, name: str) -> dict[str, None]:
        """Return the tags that a list stands for."""
        words = self._words.get((file, name), ())
        return dict.fromkeys(tag for word in words for tag in self.meaning(name, word))

    def places(self, tags: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the spelling of each tag in each file that has it with all its levels."""
        places: dict[str, dict[str, str]] = {tag: {} for tag in tags}
        for file, lists in self.files.items():
            for word in (word for words in lists.values() for word in words):
                if (tag := self.respell(tidy(word))) in places:
                    places[tag].setdefault(file, word)
        return places


_Evidence = dict[str, list[tuple[str, str]]]
"""Tags with the lists that gained or lost them."""


class _Change(NamedTuple):
    """A list of a file that changed."""

    name: str
    before: set[str]
    """The tags that it stood for."""
    after: set[str]
    came: set[str]
    gone: set[str]
    is_overwritten: bool = False
    """Whether none of several words is left, and other lists keep their tags."""


def _compare_lists(
    current: _Resolution, former: _Resolution, held: Collection[str], is_ours: bool
) -> tuple[_Evidence, _Evidence, list[tuple[str, str]]]:
    """Return the tags that lists gained and lost, with these lists, and overwritten lists."""
    came: _Evidence = {}
    gone: _Evidence = {}
    overwritten: list[tuple[str, str]] = []
    for file in current.files:
        changes = sorted(_find_changes(current, former, file, is_ours), key=_rank)
        for i, change in enumerate(changes):
            new, old, sources = change.came, change.gone, changes[:i]
            if not is_ours:
                # a program that read a source only copied its tags, and did not know other tags
                new = {t for t in new if not any(t in s.before & s.after for s in sources)}
                old = {t for t in old if all(t in s.before | s.after for s in sources)}
            if change.name in _FLAT:  # lists with levels say which tag is meant
                names = {fold(last_level(tag)) for tag in new if tag in held or tag in came}
                new = {tag for tag in new if fold(last_level(tag)) not in names or tag in came}
                old = {t for t in old if not any(t in s.after for s in sources)}
            for tag in new:
                came.setdefault(tag, []).append((file, change.name))
            for tag in old:
                gone.setdefault(tag, []).append((file, change.name))
        overwritten += [(file, change.name) for change in changes if change.is_overwritten]
    return came, gone, overwritten


def _rank(change: _Change) -> int:
    return _READ_FIRST.index(change.name) if change.name in _READ_FIRST else len(_READ_FIRST)


def _find_changes(
    current: _Resolution, former: _Resolution, file: str, is_ours: bool
) -> Iterator[_Change]:
    for name in dict.fromkeys([*former.files.get(file, ()), *current.files[file]]):
        old, new = former.words(file, name), current.words(file, name)
        after = set(current.of_list(file, name))
        if old is None:
            before = set() if is_ours else _implied_tags(current, former, file, name)
            if before != after:
                yield _Change(name, before, after, after - before, before - after)
            continue
        before = set(map(current.respell, former.of_list(file, name)))
        words = set(new or ())
        came = {tag for word in words.difference(old) for tag in current.meaning(name, word)}
        gone = {
            current.respell(tag) for word in set(old) - words for tag in former.meaning(name, word)
        }
        came, gone = came - before, gone - after
        is_overwritten = False
        is_replaced = {*map(fold, words)}.isdisjoint(map(fold, old))
        if len(gone) > 1 and is_replaced and not is_ours:
            # a program may drop a list that it does not know, or overwrite it
            left = set(map(fold, current.tags))
            kept = {tag for tag in gone if {fold(tag), fold(last_level(tag))} & left}
            gone -= kept
            is_overwritten = bool(kept) and new is not None
        if came or gone or words != set(old):  # a new spelling is a sign of a program, too
            yield _Change(name, before, after, came, gone, is_overwritten)


def _implied_tags(current: _Resolution, former: _Resolution, file: str, name: str) -> set[str]:
    """Return the tags that a program has read before it made a new list.

    A program reads the first list that is there, in a sidecar or else in the photograph. A list
    that repeats none of these tags was made by a program that has not read them, except that Immich
    always has.
    """
    names = _READ_FIRST[_READ_FIRST.index(name) :] if name in _READ_FIRST else (name,)
    if name == _TAGS_LIST:
        names = (*_READ_BY_IMMICH, *names)
    files = [file] if file in former.files else []
    if file.lower().endswith(".xmp"):
        files += [other for other in former.files if not other.lower().endswith(".xmp")]
    for source in names:
        for place in files:
            if former.words(place, source):
                tags = set(map(current.respell, former.of_list(place, source)))
                was_read = name == _TAGS_LIST and source in _READ_BY_IMMICH
                return tags if was_read or tags & {*current.of_list(file, name)} else set()
    return set()
