"""Errors: what a message is made of, and what stays of it."""

import pickle

import pytest

from tagkin.errors import (
    DamagedModel,
    InvalidInput,
    MissingExtra,
    NotFound,
    Parameter,
    StorageError,
    TagkinError,
)


@pytest.mark.parametrize("kind", [InvalidInput, NotFound, MissingExtra, StorageError, DamagedModel])
def test_messages_name_parameters_as_python_does(kind: type[TagkinError]) -> None:
    error = kind("Pass ", Parameter("overwrite", True), " or ", Parameter("tags", "embedded"), ".")
    for raised in (error, pickle.loads(pickle.dumps(error))):
        assert str(raised) == 'Pass overwrite=True or tags="embedded".'
        assert raised.parts[1] == Parameter("overwrite", True)
    assert str(Parameter("min_count")) == "min_count"
    assert str(Parameter("min_count", 3)) == "min_count=3"


def test_an_error_of_the_file_system_has_no_number() -> None:
    error = StorageError("a.csv cannot be read")
    assert (error.errno, error.filename) == (None, None)
