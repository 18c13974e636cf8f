"""Meanings of words: WordNet and word vectors, read from their files."""

from tagkin.lexicons.word_vectors import WordVectors
from tagkin.lexicons.wordnet import WordNet

__all__ = ["WordNet", "WordVectors"]
