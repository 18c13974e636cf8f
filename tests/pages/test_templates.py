"""Templates: nothing from outside becomes HTML, and nothing undefined passes for nothing."""

import base64
import re
from html.parser import HTMLParser
from importlib import resources

import jinja2
import pytest

from tagkin.pages.pictures import data_uri
from tagkin.pages.rendering import environment, read_part

HOSTILE = [
    "<script>alert(1)</script>",
    '" onload="alert(1)',
    "' onload='alert(1)",
    "</style><img src=x>",
    "a & b &amp; c",
    "-->",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% for %}",
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


def drawn(source, **data):
    return environment().from_string(source).render(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_text(text):
    document = read(drawn('<p title="{{ text }}">{{ text }}</p>', text=text))
    assert "".join(document.texts) == text
    assert document.elements == [("p", {"title": text})]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_text_through_a_macro(text):
    source = "{% macro bold(text) %}<b>{{ text }}{{ caller() }}</b>{% endmacro %}"
    source += "{% call bold(text) %}{{ text }}{% endcall %}"
    document = read(drawn(source, text=text))
    assert "".join(document.texts) == 2 * text
    assert document.elements == [("b", {})]


def test_what_is_not_given_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'forgotten' is undefined"):
        drawn("{{ forgotten }}")
    with pytest.raises(jinja2.UndefinedError):
        drawn("{% if forgotten %}{% endif %}")


def test_only_the_style_and_the_script_of_the_package_go_in_as_they_are():
    folder = resources.files("tagkin.pages").joinpath("templates")
    names = [path.name for path in folder.iterdir() if path.name.endswith(".jinja")]
    assert len(names) == 4
    unescaped = [
        match
        for name in names
        for match in re.findall(r"\w+\|safe|autoescape|Markup", read_part(name))
    ]
    assert unescaped == ["style|safe", "script|safe"]
    for name, end in (("report.css", "</style"), ("sort.js", "</script")):
        assert end not in read_part(name)


@pytest.mark.parametrize(
    ("share", "width"),
    [(-1, "0.0"), (0, "0.0"), (0.5, "50.0"), (7, "100.0"), (float("nan"), "0.0")],
)
def test_a_bar_stays_in_its_bounds(share, width):
    bar = drawn('{% from "charts.svg.jinja" import bar %}{{ bar(share) }}', share=share)
    assert f'class="fill" width="{width}%"' in bar


def test_shares_as_people_read_them():
    assert drawn("{{ 0.5|percent }} {{ 0.123|percent(1) }}") == "50 % 12.3 %"
    unknown = float("nan")
    assert drawn("{{ x|percent }}{{ x|sortable }}", x=unknown) == "–"
    assert drawn("{{ 1200|thousands }}") == "1,200"


def test_a_data_uri_gives_the_bytes_back():
    kind, _, text = data_uri(b"\x00\xff", "image/png").partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(text) == b"\x00\xff"
