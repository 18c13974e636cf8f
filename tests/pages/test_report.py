"""Reports: what is in them, and that nothing gets in or out that should not."""

import base64
import hashlib
import io
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin import FeatureAnnotator
from tagkin.annotator.quality import MEASURES
from tagkin.annotator.suggestions import Finding, Kin, PhotoSuggestions, TagSuggestion
from tagkin.calibration import ReliabilityCurve, reliability_curve
from tagkin.errors import InvalidInput, StorageError
from tagkin.evaluation import label_report
from tagkin.images import Failure
from tagkin.pages import Comparison, Report, comparisons_of, write_report
from tests.killing import failing_at, steps_of

from .page import Page


@pytest.fixture
def report(photo, files):
    rng = np.random.default_rng(0)
    Y, P = rng.random((200, 3)) < 0.4, rng.random((200, 3))
    kin = (Kin(files[5], 1.0),)
    return Report(
        "Holidays",
        facts=[("photographs", "1,200"), ("tags", "30")],
        comparisons=[
            Comparison("Of photographs", ("Visual", "Semantic"), {"MiAP": (0.25, 0.5)}, "Beware."),
            Comparison("Of tags", ("Visual", "Semantic"), {"Recall": (0.4, 0.3)}),
        ],
        reliability=reliability_curve(Y, P, 5),
        photographs=[photo, PhotoSuggestions(files[7], ())],
        truth={photo.file: {"sea", "gull"}},
        labels=label_report(Y, P, names=["sea", "boat", "gull"], n=1),
        findings=[
            Finding(files[8], "car", "wrong", 0.8, kin),
            Finding(files[9], "sky", "missing", 0.7, kin),
            Finding(files[8], "sun", "missing", 0.6, kin),
        ],
        failures=[Failure("bad.jpg", "it is empty")],
        notes=["Learned from 900 photographs."],
    )


def written(report, tmp_path, name="report.html"):
    return Page(write_report(report, tmp_path / "out" / name))


# --- content -----------------------------------------------------------------------------


def test_everything_is_there(report, tmp_path):
    page = written(report, tmp_path)
    assert page.headings() == [
        "Does it work?",
        "Suggestions",
        "Tag by tag",
        "Tags to look at again",
        "Skipped files",
    ]
    for text in ("Holidays", "1,200", "Learned from 900 photographs.", "bad.jpg", "it is empty"):
        assert text in page.text


PARTS = [f.name for f in fields(Report) if f.name != "title"]


# what a page shows of each part, and of no other
MARKS = {
    "facts": "1,200",
    "comparisons": "MiAP",
    "reliability": "Can the confidence be trusted?",
    "photographs": "photo-00.png",
    "truth": "The true tags are known here",
    "labels": "Tag by tag",
    "findings": "seems wrong",
    "failures": "it is empty",
    "notes": "Learned from 900 photographs.",
}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_may_be_left_out(report, part, tmp_path):
    empty = None if part in {"reliability", "truth", "labels"} else ()
    without = written(replace(report, **{part: empty}), tmp_path)
    there = {name for name, mark in MARKS.items() if mark in without.text}
    # without photographs there is nothing to be right or wrong about
    gone = {part, "truth"} if part == "photographs" else {part}
    assert there == set(PARTS) - gone


@pytest.mark.parametrize("part", PARTS)
def test_every_part_may_stand_alone(report, part, tmp_path):
    page = written(Report("Alone", **{part: getattr(report, part)}), tmp_path)
    assert len(page.headings()) == (part not in {"facts", "notes", "truth"})
    there = {name for name, mark in MARKS.items() if mark in page.text}
    assert there == {part} - {"truth"}


def test_right_and_wrong_are_marked_where_the_truth_is_known(report, tmp_path):
    page = written(report, tmp_path)
    assert len(page.all("span", **{"aria-label": "right"})) == 1  # sea
    assert len(page.all("span", **{"aria-label": "wrong"})) == 1  # boat
    assert "Missed: gull" in page.text
    unknown = written(replace(report, truth=None), tmp_path)
    assert not unknown.all("span", **{"aria-label": "right"})
    assert "Missed" not in unknown.text


def test_the_best_method_of_every_measure_leads(report, tmp_path):
    rows = re.findall(
        r'<div class="(row[ a-z]*)"><span>(\w+)</span>', written(report, tmp_path).source
    )
    assert rows == [
        ("row", "Visual"),
        ("row best", "Semantic"),
        ("row best", "Visual"),
        ("row", "Semantic"),
    ]


def test_the_curve_passes_through_the_bins(report, tmp_path):
    page = written(report, tmp_path)
    points = [(float(c["cx"]), float(c["cy"])) for c in page.all("circle")]
    curve = report.reliability
    expected = np.column_stack([44 + 300 * curve.predicted, 8 + 300 * (1 - curve.observed)])
    np.testing.assert_allclose(points, expected, atol=0.051)


def test_a_dot_says_how_many_suggestions_stand_behind_it(tmp_path):
    predicted, observed = np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.array([0, 0.2, 0.6, 0.75, 1])
    n_pairs = np.array([40_000, 400, 100, 4, 0])
    curve = ReliabilityCurve(predicted, observed, n_pairs)
    page = written(Report("x", reliability=curve), tmp_path)
    radii = [float(c["r"]) for c in page.all("circle")]
    assert len(radii) == 3, "the share of four suggestions says little"
    assert radii[1] == pytest.approx(2 * radii[2], rel=0.02), "the area is in proportion"
    assert radii[0] == radii[1], "what nobody would suggest does not dwarf the rest"
    assert re.findall(r'class="count"[^>]*>([\d,]+)<', page.source) == ["40,000", "400", "100"]
    (chart,) = page.all("svg", role="img")
    for sentence in (
        "at 30 % confidence, 20 % of 400 are right",
        "at 50 % confidence, 60 % of 100 are right",
    ):
        assert f"<title>{sentence}</title>" in page.source
        assert sentence in chart["aria-label"]


def test_the_table_has_a_row_per_tag_in_the_order_of_the_report(tmp_path):
    """One photograph that is ranked first does not put its tag before one that is on many."""
    Y, S = np.zeros((60, 3)), np.tile(np.linspace(1, 0, 60)[:, None], (1, 3))
    Y[0, 0], Y[:40, 1], Y[-40:, 2] = 1, 1, 1
    S[:, 1] -= 0.1 * (1 - Y[:, 1]) * (np.arange(60) == 59)
    labels = label_report(Y, S, names=["luck", "good", "bad"], min_scores=0.5)
    page = written(Report("x", labels=labels), tmp_path)
    rows = re.findall(r'<th scope="row" data-value="(\w+)">', page.source)
    assert rows == ["good", "luck", "bad"] == labels.names[labels.order].tolist()
    (head,) = [a for a in page.all("th", scope="col") if "aria-sort" in a]
    assert head["aria-sort"] == "descending"
    assert re.search(r'aria-sort="descending"><button type="button">Damped<', page.source)
    shown = [float(v) for v in re.findall(r'class="with-bar" data-value="([\d.]+)"', page.source)]
    np.testing.assert_allclose(shown, labels.damped_precision[labels.order], atol=1e-6)
    assert "confidence of 50 %" in page.text


def test_a_tag_that_is_never_suggested_has_no_precision(tmp_path):
    Y = np.array([[1, 1], [1, 0], [0, 1]])
    labels = label_report(Y, np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.1]]), min_scores=0.5)
    source = written(Report("x", labels=labels), tmp_path).source
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", source, re.DOTALL)
    never = next(row for row in rows if 'data-value="1"><bdi>1<' in row)
    figures = re.findall(r'<td class="figure" data-value="([^"]*)">', never)
    assert figures[-3:] == ["0", "", "0.000000"], "suggested, precision, recall"


def test_a_tag_on_no_photograph_is_last_and_has_no_number(tmp_path):
    Y, S = np.array([[1, 0], [1, 0]]), np.array([[0.1, 0.9], [0.2, 0.8]])
    page = written(Report("x", labels=label_report(Y, S, names=["a", "never"], n=1)), tmp_path)
    assert re.findall(r'scope="row" data-value="(\w+)"', page.source) == ["a", "never"]
    assert "–" in page.text
    assert "nan" not in page.source.lower().split("<script>")[0].split("</style>")[1]


def test_findings_of_a_photograph_share_a_card(report, tmp_path):
    page = written(Report("x", findings=report.findings), tmp_path)
    assert len(page.all("article")) == 2
    assert page.text.count("seems wrong") == 1
    assert page.text.count("seems missing") == 2


def test_many_failures_are_counted(tmp_path):
    failures = [Failure(f"{k}.jpg", "empty") for k in range(1000)]
    page = written(Report("x", failures=failures), tmp_path)
    assert "1,000 files were left out" in page.text
    assert "and 800 more" in page.text


def test_many_kin_are_summed_up(files, tmp_path):
    kin = tuple(Kin(file, 0.1) for file in files[:10])
    photo = PhotoSuggestions(files[11], (TagSuggestion("sea", 0.9, kin, 0.0, 0.0),))
    page = written(Report("x", photographs=[photo]), tmp_path)
    assert "and 4 more with 40 %" in page.text


def test_what_speaks_for_a_suggestion_is_said(photo, tmp_path):
    page = written(Report("x", photographs=[photo]), tmp_path)
    assert "Suggested 100 % by its kin." in page.text
    assert "60 % by its kin, 30 % by the photograph itself, 10 % by" in page.text


# --- one file, safe and small ------------------------------------------------------------


def test_nothing_is_fetched(report, tmp_path):
    page = written(report, tmp_path)
    assert "http://" not in page.source
    assert "https://" not in page.source
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            assert attributes.get(name, "#").startswith(("data:image/", "#"))
    assert not {"link", "iframe", "object", "form", "base"} & {tag for tag, _ in page.elements}
    assert "url(" not in page.source
    assert "@import" not in page.source


def test_the_policy_allows_this_style_and_this_script_only(report, tmp_path):
    page = written(report, tmp_path)
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = policy["content"]
    assert "default-src 'none'" in rules
    assert "unsafe" not in rules
    for tag in ("style", "script"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page.source, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in rules
    # style attributes and handlers would be refused by the policy
    assert not [a for _, a in page.elements if "style" in a or any(n.startswith("on") for n in a)]


HOSTILE = [
    '"><script>alert(1)</script>',
    "</style><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "http://example.invalid/x.png",
    "\ud800\x00\x1b[31m",
    "\u202egpj.exe",
    "日本 <b>",
    "../" * 20 + "etc/passwd",
]


def hostile_report(report, text):
    """A report with a text from outside in each of its fields, and all these texts."""
    texts = []

    def odd(field):
        texts.append(f"{field} {text}")
        return texts[-1]

    kin = (Kin(odd("kin"), 1.0),)
    photo = PhotoSuggestions(
        odd("file"), (TagSuggestion(odd("suggestion"), 0.5, kin, 0.0, 0.0),), (odd("carried"),)
    )
    wrong, missing = odd("file of a finding"), odd("file of another")
    report = Report(
        odd("title"),
        facts=[(odd("fact"), odd("value"))],
        comparisons=[
            Comparison(odd("comparison"), (odd("method"), "b"), {odd("measure"): (0.1, 0.2)})
        ],
        reliability=report.reliability,
        photographs=[photo],
        truth={photo.file: {odd("missed")}},
        labels=replace(
            report.labels,
            names=np.array([odd("label"), odd("mistaken"), "c"], dtype=object),
            confused_with=np.array([[1], [0], [0]]),
            confused_count=np.array([[3], [2], [1]]),
        ),
        findings=[
            Finding(wrong, odd("wrong"), "wrong", 0.5, (Kin(odd("nearest"), 1.0),)),
            Finding(missing, odd("missing"), "missing", 0.5, ()),
        ],
        failures=[Failure(odd("failure"), odd("reason"))],
        notes=[odd("note")],
    )
    report = replace(
        report, comparisons=[replace(report.comparisons[0], note=odd("note of a comparison"))]
    )
    return report, texts


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text_in_every_field(report, text, tmp_path):
    plain, _ = hostile_report(report, "plain")
    hostile, texts = hostile_report(report, text)
    page = written(hostile, tmp_path)
    expected = written(plain, tmp_path, "plain.html")
    # the same elements with the same attributes as with plain names, and nothing else
    assert [(tag, set(a)) for tag, a in page.elements] == [
        (tag, set(a)) for tag, a in expected.elements
    ]
    assert all(a["src"].startswith("data:image/jpeg") for a in page.all("img"))
    assert len(texts) == 22
    titles = {a["title"] for _, a in page.elements if "title" in a}
    for text in texts:
        shown = text.replace("\ud800\x00\x1b", "\ufffd\ufffd\ufffd")
        # a file stands there without its folders, shortened; the whole of it in its title
        assert shown in page.text or shown in titles, text


def luminance(code):
    channels = (int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(scheme, tmp_path):
    source = written(Report("x"), tmp_path).source
    block = re.findall(r":root \{(.*?)\}", source, re.DOTALL)[scheme]
    colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
    for text in ("ink", "soft", "accent", "right", "wrong"):
        for ground in ("paper", "card", "wash"):
            low, high = sorted(luminance(colour[name]) for name in (text, ground))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


def test_a_kin_is_embedded_once(files, tmp_path):
    kin = (Kin(files[1], 0.6), Kin(files[2], 0.4))
    photos = [
        PhotoSuggestions(f, (TagSuggestion("a", 0.5, kin, 0.0, 0.0),) * 3) for f in files[3:9]
    ]
    page = written(Report("x", photographs=photos), tmp_path)
    assert len(page.all("image")) == 2
    assert len(page.all("use")) == 6 * 3 * 2
    ids = {a["id"] for a in page.all("symbol")}
    assert {a["href"].removeprefix("#") for a in page.all("use")} == ids


def test_embedded_pictures_can_be_read_and_are_small(report, tmp_path):
    page = written(report, tmp_path)
    sources = [a["src"] for a in page.all("img")] + [a["href"] for a in page.all("image")]
    for source in sources:
        with Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))) as image:
            assert max(image.size) <= 200
    assert all(a["alt"] for a in page.all("img"))
    assert all(a["aria-label"] for a in page.all("svg", role="img"))


def test_vanished_photographs_are_shown_grey(report, files, tmp_path):
    for file in files:
        Path(file).unlink()
    page = written(report, tmp_path)
    source = page.all("img", loading="lazy")[0]["src"]
    with Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))) as image:
        assert np.ptp(np.asarray(image, dtype=int), axis=2).max() < 15


def test_the_same_report_gives_the_same_bytes(report, tmp_path):
    first = written(report, tmp_path, "a.html").source
    assert written(report, tmp_path, "b.html").source == first


def test_a_full_disk_leaves_the_old_report(report, tmp_path):
    path = tmp_path / "report.html"
    steps = steps_of(lambda: write_report(Report("old"), path))
    before = path.read_bytes()
    with failing_at(steps.index("fsync")), pytest.raises(StorageError, match="No space left"):
        write_report(report, path)
    assert path.read_bytes() == before


def test_values_have_to_go_with_methods():
    with pytest.raises(InvalidInput, match="MAP has 1 values for 2 methods"):
        Comparison("x", ("a", "b"), {"MAP": (0.5,)})


def test_each_input_is_compared_if_there_are_several(tmp_path):
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 3)) < 0.4).astype(float)
    X, times = Y @ rng.random((3, 8)) + rng.random((60, 8)), np.arange(60) * 4 * 3600.0
    titles = [group.title for group in MEASURES]
    assert [c.title for c in comparisons_of(FeatureAnnotator().cross_validate(X, Y))] == titles
    quality = FeatureAnnotator().cross_validate(X, Y, times=times)
    *others, of_inputs = comparisons_of(quality)
    assert [c.title for c in others] == titles
    assert of_inputs.methods == (
        "Pictures alone",
        "Times, places and folders alone",
        "All together",
    )
    known = (quality.inputs["pictures"], quality.inputs["moments"], quality.semantic)
    keys = ("image_precision", "MiAP", "MAP")
    assert [*of_inputs.measures.values()] == [tuple(m[key] for m in known) for key in keys]
    page = written(Report("Quality", comparisons=[of_inputs]), tmp_path)
    assert "Times, places and folders alone" in page.text
