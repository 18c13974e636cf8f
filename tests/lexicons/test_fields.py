"""The fields of all lines at once against what Python makes of one line after the other."""

import numpy as np
import pytest

from tagkin.lexicons.fields import Fields

TEXT = b"""  1 a licence, which is indented
00001740 03 n 0a entity 0 001 | that which is | known
dog|and its gloss

\t
caf\xc3\xa9 12 7f -3 1.5 123456789 1234567890
end"""


def plain(data):
    """Line number -> its fields."""
    lines = enumerate(data.decode().split("\n"), 1)
    found = {n: line.split("|", 1)[0].split() for n, line in lines if not line.startswith(" ")}
    return {n: fields for n, fields in found.items() if fields}


@pytest.mark.parametrize("data", [TEXT, TEXT.replace(b"\n", b"\r\n"), TEXT + b"\n", b"", b"\n"])
def test_fields_are_those_of_each_line(data):
    fields, expected = Fields.of(data), plain(data)
    assert fields.lines.tolist() == list(expected)
    for i, texts in enumerate(expected.values()):
        assert fields.texts(fields.first[i] + np.arange(fields.n_fields[i])) == texts


def test_numbers_and_texts():
    fields = Fields.of(TEXT)
    last = fields.first[2] + np.arange(fields.n_fields[2])
    assert fields.integers(last).tolist() == [-1, 12, -1, -1, -1, 123456789, -1]
    assert fields.integers(last, 16).tolist()[:3] == [-1, 0x12, 0x7F]
    assert fields.integers(last, less=1).tolist() == [-1, 1, 7, -1, -1, 12345678, 123456789]
    assert fields.numbers(last[1:]).tolist()[3] == 1.5
    assert np.isnan(fields.numbers(last[:1])).all()
    assert fields.are(last, b"12").tolist() == [False, True] + 5 * [False]
    assert fields.end_with(last, b"5").tolist() == [False] * 4 + [True, False, False]
    assert fields.line(2).startswith("café 12")
    assert fields.are(fields.first[3:], b"ending").tolist() == [False]
