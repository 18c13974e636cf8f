"""A small synthetic WordNet."""

import pytest

from tagkin.paper.wordnet import WordNet

from .wordnet_writer import write_wordnet


@pytest.fixture
def folder(tmp_path):
    return write_wordnet(tmp_path / "wordnet")


@pytest.fixture
def wordnet(folder):
    return WordNet(folder)
