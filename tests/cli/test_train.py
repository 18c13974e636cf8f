"""tagkin train, as a user would run it, through the real backbone."""

import shutil

from PIL import Image

import tagkin

from .conftest import lines
from .synthetic import make_photographs, write_sidecar, write_tag_file


def test_train_says_what_it_learned_and_what_comes_next(world):
    assert "Learned 5 tags from 42 photographs" in world.train.stdout
    assert "42, 42 of them with tags to learn from" in world.train.stdout
    assert "Next: tagkin suggest" in world.train.stdout
    assert world.train.stderr == ""


def test_train_in_json_lists_everything(run, world, tmp_path):
    photos = tmp_path / "photos"
    tags = make_photographs(photos, n_each=2)
    (photos / "broken.jpg").write_bytes(b"not a picture")
    shutil.copy(photos / "red-circle-0.jpg", photos / "same.jpg")
    (photos / "untagged.jpg").write_bytes((world.photos / "red-circle-3.jpg").read_bytes())
    tags |= {"broken.jpg": ["red"], "same.jpg": ["once"], "gone.jpg": ["red"]}
    write_tag_file(photos / "metadata.jsonl", tags)
    result = run("train", photos, "--min-count", 2, "--json")
    assert result.exit_code == 0, result.stderr
    (summary,) = lines(result.stdout)
    (unreadable,) = summary["photographs"].pop("unreadable")
    assert unreadable["file"] == "photos/broken.jpg"
    assert unreadable["reason"]
    assert summary["photographs"] == {"found": 14, "used": 12, "complete": 13}
    assert summary["tags"] == {"learned": 5, "dropped": {"once": 1}}
    assert "the tag file names 1 photograph that is not there: gone.jpg" in result.stderr
    assert "photos/broken.jpg: " in result.stderr
    assert tagkin.load(tmp_path / summary["model"]).cache is True


def test_series_are_counted_where_there_are_some(run, tmp_path):
    photos = tmp_path / "photos"
    tags = make_photographs(photos, n_each=3)
    shots = list(tags)[:3]
    for number, name in enumerate(shots):
        new = f"IMG_12{number:02}.jpg"
        (photos / name).rename(photos / new)
        tags[new] = tags.pop(name)
    write_tag_file(photos / "metadata.jsonl", tags)
    (summary,) = lines(run("train", photos, "--json").stdout)
    card = (tmp_path / summary["model"] / "README.md").read_text()
    assert "Held out as a whole: 3 photographs in 1 series." in card
    output = run("evaluate", photos).stdout
    assert "3 photographs in 1 series" in " ".join(output.split())


def test_events_and_trips_are_counted_where_times_are_known(run, tmp_path):
    """What is more than a third of all photographs is held out in parts, and does not count."""
    photos = tmp_path / "photos"
    tags = make_photographs(photos, n_each=2)
    hours = ["01 10", "01 11", "01 18", *["20 10"] * 5]  # two events of the first trip are small
    for name, hour in zip(tags, hours, strict=False):
        stamp(photos / name, f"2024:05:{hour}:00:00")
    write_tag_file(photos / "metadata.jsonl", tags)
    (summary,) = lines(run("train", photos, "--json").stdout)
    card = (tmp_path / summary["model"] / "README.md").read_text()
    assert "Held out as a whole: 2 photographs in 1 event, and 3 photographs in 1 trip." in card
    result = run("evaluate", photos, "--json", "--report", "quality.html")
    (quality,) = lines(result.stdout)
    assert quality["how"].endswith("(2 photographs in 1 event, each event held out as a whole)")
    assert set(quality["inputs"]) == {"pictures", "names", "moments"}
    assert "Times, places and folders alone" in (tmp_path / "quality.html").read_text()
    table = run("evaluate", photos).stdout
    (line,) = [row for row in table.splitlines() if row.startswith("Times, places")]
    assert line.split()[-2] == f"{100 * quality['inputs']['moments']['MAP']:.0f}"


def stamp(photograph, taken):
    """Write the time of capture into a photograph."""
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = taken
    with Image.open(photograph) as image:
        image.save(photograph, exif=exif)


def test_train_reads_keywords_beside_the_photographs(run, tmp_path):
    for name, tags in make_photographs(tmp_path / "photos", n_each=2).items():
        write_sidecar(tmp_path / "photos" / name, tags)
    result = run("train", "photos")
    assert result.exit_code == 0, result.stderr
    assert "Learned 5 tags from 12 photographs" in result.stdout


def test_a_flat_tag_and_one_with_its_level_are_one(run, world, tmp_path):
    rows = {}
    for i, (name, (colour, shape)) in enumerate(world.tags_of.items()):
        forms = {"circle": ["circle", "circles"] * 2, "square": ["form|square"] * 3 + ["square"]}
        rows[name] = [colour, forms[shape][i % 4]]
    variants = write_tag_file(tmp_path / "variants.jsonl", rows)
    catalogue = ("--catalogue", "own.sqlite")
    assert run("scan", world.photos, "--tags", variants, *catalogue).exit_code == 0
    result = run("train", *catalogue)
    assert result.exit_code == 0, result.stderr
    vocabulary = tagkin.load(tmp_path / "own.model").vocabulary_
    counts = dict(zip(vocabulary.names_, vocabulary.counts_.tolist(), strict=True))
    assert counts["circle"] + counts["circles"] == 21
    assert (counts["form|square"], counts["form"]) == (21, 21)  # flat and with its level


def test_a_model_keeps_its_backbone(run, tmp_path):
    photos = tmp_path / "photos"
    tags = make_photographs(photos, n_each=2)
    untagged = tags.popitem()[0]
    write_tag_file(photos / "metadata.jsonl", tags)
    result = run("train", photos, "--backbone", "efficientnet-lite0", "--json")
    assert result.exit_code == 0, result.stderr
    model = tagkin.load(tmp_path / lines(result.stdout)[0]["model"])
    assert model.backbone == "efficientnet-lite0"
    result = run("suggest", "--only-untagged", "-n", 1, "--json")
    photo, _ = lines(result.stdout)
    assert photo["file"] == f"photos/{untagged}"
    assert len(photo["suggestions"]) == 1, result.stderr
    result = run("evaluate", photos, "--backbone", "efficientnet-lite5")
    assert result.exit_code == 1
    assert "There is no backbone 'efficientnet-lite5'" in result.stderr


def test_few_photographs_say_how_far_percentages_hold(world):
    assert "of suggestions at 80 %, 70 to 99 % may be right" in world.train.stdout
    assert "learned from 42 complete photographs" in world.train.stdout
