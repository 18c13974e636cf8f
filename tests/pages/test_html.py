"""Nothing from outside becomes HTML."""

import base64
from html.parser import HTMLParser

import pytest

from tagkin.pages._html import Markup, bar, data_uri, element, join, safe_text

HOSTILE = [
    "<script>alert(1)</script>",
    '" onload="alert(1)',
    "' onload='alert(1)",
    "</style><img src=x>",
    "a & b &amp; c",
    "-->",
    "javascript:alert(1)",
]


class Reader(HTMLParser):
    """The texts and the elements of a page."""

    def __init__(self):
        super().__init__()
        self.texts, self.elements = [], []

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_text(text):
    found = read(element("p", text, title=text))
    assert "".join(found.texts) == text
    assert found.elements == [("p", {"title": text})]


def test_signs_that_a_page_cannot_hold_are_marked():
    assert safe_text("a\x00b\x1fc\ud800d") == "a\ufffdb\ufffdc\ufffdd"
    assert safe_text("a\nb\tc") == "a\nb\tc"
    element("p", "\udcff").encode("utf-8")


def test_markup_is_not_escaped_again():
    inner = element("b", "<")
    assert element("p", inner) == "<p><b>&lt;</b></p>"
    assert join([inner, "<", None]) == "<b>&lt;</b>&lt;"
    assert isinstance(join([]), Markup)


def test_attributes():
    made = element("p", class_="x", aria_label="y", hidden=True, title=None, lang=False, width=3)
    assert made == '<p class="x" aria-label="y" hidden width="3"></p>'


@pytest.mark.parametrize(
    ("share", "width"), [(-1, "0.0%"), (0, "0.0%"), (0.5, "50.0%"), (7, "100.0%")]
)
def test_a_bar_stays_in_its_bounds(share, width):
    assert f'class="fill" width="{width}"' in bar(share)


def test_a_data_uri_gives_the_bytes_back():
    kind, _, text = data_uri(b"\x00\xff", "image/png").partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(text) == b"\x00\xff"
