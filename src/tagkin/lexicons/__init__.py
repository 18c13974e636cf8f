"""Meanings of words: a sentence encoder, read from its files."""

from tagkin.lexicons.sentence_encoder import SentenceEncoder

__all__ = ["SentenceEncoder"]
