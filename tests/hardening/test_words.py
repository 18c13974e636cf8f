"""Words that are no text, or more than text: in tag files, tables, CSV and on the terminal."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tagkin.cli.output import csv_text
from tagkin.cli.streams import encode_text, visible
from tagkin.collection import TagTable, read_tags
from tagkin.errors import StorageError
from tagkin.features import FeatureCache, default_cache_folder
from tests.collection.matched import match_tags
from tests.collection.tag_file_writer import write_tag_file
from tests.forking import in_child, needs_fork
from tests.hardening.samples import photographs
from tests.privileges import without_privileges


def test_half_a_pair_in_json_lines_is_a_mark(tmp_path):
    path = tmp_path / "tags.jsonl"
    path.write_text('{"file_name": "a.jpg", "tags": ["sea\\ud800", "tree"]}\n')
    table = read_tags(path)
    assert table == TagTable(["a.jpg"], [["sea\ufffd", "tree"]])
    write_tag_file(tmp_path / "again.csv", table)
    assert read_tags(tmp_path / "again.csv") == table


def test_half_a_pair_in_a_file_name_is_a_name_that_no_file_has(tmp_path):
    (tmp_path / "a.jpg").write_bytes(photographs()["jpeg"])
    (tmp_path / "metadata.jsonl").write_text(
        '{"file_name": "a.jpg", "tags": ["x"]}\n{"file_name": "\\ud800.jpg", "tags": ["x"]}\n'
    )
    matched = match_tags(tmp_path, tmp_path / "metadata.jsonl")
    assert matched.tags == {"a.jpg": ["x"]}
    assert matched.absent == ["\ud800.jpg"]


def test_half_a_pair_can_be_written_as_data():
    """A byte of a file name as that byte, half a pair as its escape."""
    assert encode_text("\udce9 \ud800 é") == b"\xe9 \\ud800 \xc3\xa9"


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "'=1", "''-"]


def test_no_cell_of_csv_is_a_formula_or_talks_to_a_terminal():
    rows = [[word, 0.5] for word in [*FORMULAS, "a\x1b[31mb", "plain", "a=b"]]
    cells = list(csv.reader(io.StringIO(csv_text(["tag", "confidence"], rows))))
    shown = [f"'{word}" for word in FORMULAS] + ["a\ufffd[31mb", "plain", "a=b"]
    assert cells == [["tag", "confidence"], *([word, "0.5"] for word in shown)]


def test_tag_files_have_a_way_back_from_guarded_cells(tmp_path):
    table = TagTable(["=a.jpg", "@b.jpg"], [[*FORMULAS, "a,b"], ["-"]])
    write_tag_file(tmp_path / "tags.csv", table)
    cells = [row for row in csv.reader((tmp_path / "tags.csv").open(newline="")) if row]
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in cells for cell in row)
    assert read_tags(tmp_path / "tags.csv") == table


def test_nothing_turns_the_text_on_a_terminal():
    turning = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    assert visible(f"photo{turning}gpj.exe") == f"photo{'�' * len(turning)}gpj.exe"
    family = "👨\u200d👩\u200d👧"  # joined by characters that have no width, and do no harm
    assert visible(family) == family


def test_files_of_other_formats_that_a_tag_file_names_are_there(tmp_path):
    """They were once called "not there"."""
    (tmp_path / "inside").mkdir()
    (tmp_path / "a.jpg").write_bytes(photographs()["jpeg"])
    for name in ("b.xcf", "inside/c.xcf"):
        (tmp_path / name).write_bytes(b"gimp xcf file")
    names = ["a.jpg", "b.xcf", "inside/c.xcf", "d.xcf"]
    write_tag_file(tmp_path / "metadata.csv", TagTable(names, [["sea"]] * 4))
    assert match_tags(tmp_path, tmp_path / "metadata.csv").absent == ["d.xcf"]


# --- where there is no home, or no way in ---


@needs_fork
def test_somebody_without_a_home(tmp_path):
    """A container may run as a user that no list knows."""
    if os.geteuid() != 0:
        pytest.skip("only root can become an unknown user")

    def work():
        for name in ("HOME", "TAGKIN_CACHE", "XDG_CACHE_HOME"):
            os.environ.pop(name, None)
        os.setresuid(54321, 54321, 54321)
        with pytest.raises(StorageError, match=r"no home folder .* TAGKIN_CACHE"):
            default_cache_folder()
        os.environ["XDG_CACHE_HOME"] = "/somewhere"
        assert default_cache_folder() == Path("/somewhere/tagkin")

    assert os.waitpid(in_child(work), 0)[1] == 0


def test_a_closed_folder_is_as_good_as_none(open_folder):
    closed = open_folder / "closed"
    with without_privileges():
        (closed / "cache").mkdir(parents=True)
        closed.chmod(0)
        cache = FeatureCache(closed / "cache")
        with pytest.warns(UserWarning, match="Features cannot be kept"):
            cache.remember(["a"], [os.stat("/")], ["00" * 32])
        assert cache.digests(["a"], [os.stat("/")]) == [None]
        closed.chmod(0o700)


def test_libraries_do_not_talk_to_the_terminal(tmp_path):
    """What a library writes to number 2 goes nowhere; our own words and exit codes stay."""
    program = (
        "import os, sys\n"
        "import typer\n"
        "from tagkin.cli import app, streams\n"
        "with streams.only_our_words():\n"
        "    os.write(2, b'libtiff says something\\n')\n"
        "    print('our words', file=sys.stderr)\n"
        "os.write(2, b'afterwards')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "our words\nafterwards"
    loud = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"TAGKIN_DEBUG": "1"},
    )
    assert "libtiff says something" in loud.stderr
