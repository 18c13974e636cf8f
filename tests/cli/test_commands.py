"""What is asked besides suggestions, as a user would ask, through the real backbone."""

import csv
import io
import re
from pathlib import Path

import tagkin
from tests.pages.page import Page

from .conftest import lines


def rounded(value: object) -> object:
    """As JSON has it: numbers of six digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def test_json_is_what_the_library_says(run, world, catalogue, monkeypatch):
    """`find --like --json` and `audit --json` write `to_dict` of their results."""
    photo = world.photos / "red-circle-0.jpg"
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    learned = tagkin.load(catalogue.with_suffix(".model"))
    learned.relocate(world.photos)
    similar = ("find", "--like", photo, "--json", "-n", 3, "--catalogue", catalogue)
    (answer,) = lines(run(*similar).stdout)
    (expected,) = learned.similar([photo], 3)
    assert answer["similar"] == [rounded(neighbour.to_dict()) for neighbour in expected]
    findings = lines(run("audit", "--catalogue", catalogue, "--json", "-n", 4).stdout)
    assert findings == [rounded(finding.to_dict()) for finding in learned.audit(4)]
    for kin in findings[0]["kin"]:
        assert sorted(kin["tags"]) == sorted(world.tags_of[Path(kin["file"]).name])


def test_similar(run, world):
    photo = world.photos / "green-square-0.jpg"
    command = ("find", "--like", photo, "--catalogue", world.catalogue)
    (answer,) = lines(run(*command, "-n", 4, "--json").stdout)
    assert list(answer) == ["file", "similar"]
    assert len(answer["similar"]) == 4
    fields = ["file", "similarity", "tags"]
    assert [list(neighbour) for neighbour in answer["similar"]] == [fields] * 4
    assert str(photo) not in {neighbour["file"] for neighbour in answer["similar"]}
    assert "green" in answer["similar"][0]["tags"]
    assert run(*command).stdout.split()[:3] == ["Photograph", "Similarity", "Tags"]


def test_audit_in_all_its_forms(run, catalogue, tmp_path):
    command = ("audit", "--catalogue", catalogue, "-n", 6)
    records = lines(run(*command, "--json").stdout)
    assert [list(finding) for finding in records] == [
        ["file", "tag", "kind", "confidence", "kin"]
    ] * 6
    rows = list(csv.DictReader(io.StringIO(run(*command, "--csv").stdout)))
    assert [(r["file_name"], r["tag"]) for r in rows] == [(f["file"], f["tag"]) for f in records]
    wrong = lines(run(*command, "--kind", "wrong", "--json").stdout)
    assert {finding["kind"] for finding in wrong} == {"wrong"}
    result = run(*command, "--report", "audit.html")
    assert result.stdout.split()[:5] == ["Photograph", "Tag", "Issue", "Confidence", "Kin"]
    assert "seem" in result.stderr
    page = Page(tmp_path / "audit.html")
    assert page.headings() == ["Tags to look at again"]
    assert len(page.all("article")) == len({finding["file"] for finding in records})
    kinds = [finding["kind"] for finding in records]
    assert page.text.count("✗ seems wrong") == kinds.count("wrong")
    assert page.text.count("+ seems missing") == kinds.count("missing")
    assert len(page.all("use")) == sum(len(finding["kin"]) for finding in records)
    odd = run(*command, "--kind", "odd")
    assert odd.exit_code == 2
    assert odd.stderr.endswith("Invalid value for '--kind': odd is not wrong or missing.\n")


def test_an_audit_says_how_far_it_looked(run, catalogue):
    few = run("audit", "--catalogue", catalogue, "-n", 3)
    shares = [int(share) for share in re.findall(r"(\d+) %  ", few.stdout)]
    below = sum(share < 50 for share in shares)
    assert ("below 50 %" in few.stderr) == bool(below)
    result = run("audit", "--catalogue", catalogue, "--kind", "wrong")
    assert len(re.findall(r" wrong  +\d+ %  ", result.stdout)) == 20
    assert result.stderr == (
        "Checked 21 tagged photographs: no tag seems wrong with a confidence of 50 % or more. "
        "Also shown: 20 findings below 50 %, which are mostly no mistakes.\n"
    )


def test_evaluate_by_cross_validation(run, world, tmp_path):
    command = ("evaluate", "--catalogue", world.catalogue)
    result = run(*command, "--json", "--report", "quality.html")
    assert result.exit_code == 0, result.stderr
    (quality,) = lines(result.stdout)
    assert list(quality) == [
        "how",
        "photographs",
        "tags_per_photograph",
        "semantic",
        "visual",
        "inputs",
        "by_default",
        "reached",
        "reliability",
        "tags",
        "unreadable",
    ]
    assert (quality["photographs"], quality["tags_per_photograph"]) == (42, 2)
    for name in ("image_precision", "hit_rate", "macro_precision", "n_plus"):
        assert name in quality["semantic"]
    assert quality["semantic"]["image_precision"] == 0.4, "all five tags, two of them right"
    assert sum(bin_["pairs"] for bin_ in quality["reliability"]) == 42 * 5
    assert "10-fold cross-validation on 42 tagged photographs" in quality["how"]
    assert quality["semantic"]["MAP"] > 0.8
    assert set(quality["visual"]) == set(quality["semantic"])
    assert set(quality["inputs"]) == {"pictures", "names"}
    for alone in quality["inputs"].values():
        assert set(alone) == set(quality["semantic"])
    assert [point["wanted"] for point in quality["reached"]] == [0.5, 0.7, 0.8, 0.9]
    order = [tag["tag"] for tag in quality["tags"]]
    assert sorted(order) == ["blue", "circle", "green", "red", "square"]
    assert {tag["support"] for tag in quality["tags"]} == {14, 21}
    rows = list(csv.DictReader(io.StringIO(run(*command, "--csv").stdout)))
    assert [row["name"] for row in rows] == order
    page = (tmp_path / "quality.html").read_text()
    assert re.findall(r'<th scope="row" data-value="(\w+)">', page) == order
    table = run(*command).stdout
    assert "2.0 of 5 tags on average" in table
    for word in (
        "Visual neighbours",
        "Per photograph",
        "At least one right",
        "Mean over tags",
        "Pictures alone",
        "Names of tags alone",
        "All together",
    ):
        assert word in page
        assert word in table
    for word in ("Semantic space", "Asked for (--precision)"):
        assert word in table
