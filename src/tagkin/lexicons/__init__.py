"""Meanings of words: WordNet, word vectors and a sentence encoder, read from their files."""

from tagkin.lexicons.sentence_encoder import SentenceEncoder
from tagkin.lexicons.word_vectors import WordVectors
from tagkin.lexicons.wordnet import WordNet

__all__ = ["SentenceEncoder", "WordNet", "WordVectors"]
