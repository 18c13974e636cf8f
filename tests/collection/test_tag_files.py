"""Files of tags: every form that is read, what is refused and where, and nothing lost."""

import json
import tracemalloc

import numpy as np
import pytest

from tagkin.collection import TagTable, read_tags
from tagkin.collection.tag_files import find_tag_file
from tagkin.errors import InvalidInput, StorageError
from tagkin.labels import Vocabulary
from tests.collection.tag_file_writer import write_tag_file

TABLE = TagTable(["a.jpg", "b/c.jpg"], [["dog", "traffic light"], []])


@pytest.fixture
def file(tmp_path):
    """A function that writes a file of that suffix and gives its path."""

    def write(suffix, content):
        path = tmp_path / f"tags{suffix}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# --- reading ---


@pytest.mark.parametrize(
    "content",
    [
        "file_name,tags\na.jpg,dog;traffic light\nb/c.jpg,\n",
        'file_name,labels\na.jpg,"dog,traffic light"\nb/c.jpg,\n',
        'file_name,tags\na.jpg,"dog, traffic light"\nb/c.jpg,\n',
        "id,tags,file_name\n7, dog ; traffic light;;dog ,a.jpg\n8, ,b/c.jpg",
        "file_name,tag\na.jpg,dog\nb/c.jpg,\na.jpg,traffic light\n",
        "file_name,label\r\na.jpg,dog\r\na.jpg,traffic light\r\n\r\nb/c.jpg,\r\n",
        "\ufefffile_name , tags \r\na.jpg,dog;traffic light\r\nb/c.jpg,\r\n",
        'file_name,caption,tags\na.jpg,"two\nlines, ""q""",dog;traffic light\nb/c.jpg,,',
    ],
)
def test_csv_files_that_say_the_same(content, file):
    assert read_tags(file(".csv", content)) == TABLE


@pytest.mark.parametrize(
    "content",
    [
        '{"file_name": "a.jpg", "tags": ["dog", "traffic light"]}\n{"file_name": "b/c.jpg"}\n',
        '{"file_name": "a.jpg", "labels": ["dog", " traffic light", "dog", ""]}\r\n\r\n'
        '{"labels": null, "file_name": "b/c.jpg"}',
        '\ufeff{"file_name": "a.jpg", "tag": "dog"}\n{"file_name": "b/c.jpg", "tag": null}\n'
        '{"file_name": "a.jpg", "tag": "traffic light"}\n',
    ],
)
def test_json_files_that_say_the_same(content, file):
    assert read_tags(file(".JSONL", content)) == TABLE


def test_the_separator_is_one_for_the_whole_column(file):
    path = file(".csv", 'file_name,tags\na,"animal|dog;red, white"\nb,animal|cat\n')
    assert read_tags(path).tags == [["animal|dog", "red, white"], ["animal|cat"]]
    path = file(".csv", 'file_name,tags\na,"x|y"\nb,"red, white"\n')
    assert read_tags(path).tags == [["x|y"], ["red", "white"]]


def test_the_column_is_tags_before_labels_or_the_one_asked_for(file):
    row = {"file_name": "a", "label": "w", "labels": ["x"], "tags": ["y"], "mood": ["z"]}
    path = file(".jsonl", json.dumps(row))
    assert read_tags(path).tags == [["y"]]
    for column, tag in (("labels", "x"), ("label", "w"), ("mood", "z")):
        assert read_tags(path, column=column).tags == [[tag]]
    with pytest.raises(InvalidInput, match="has no column Tags; found file_name, label, labels"):
        read_tags(path, column="Tags")
    with pytest.raises(InvalidInput, match="no column of tags; found file"):
        read_tags(file(".csv", "file_name,mood\na,b\n"))
    assert read_tags(path.with_suffix(".csv"), column="mood").tags == [["b"]]


def test_repeated_images_are_put_together(file):
    content = "file_name,tags\na,x;y\nb,z\na,y;w\n"
    table = read_tags(file(".csv", content))
    assert table == TagTable(["a", "b"], [["x", "y", "w"], ["z"]])


def test_line_separators_inside_json_texts_are_kept(file):
    row = json.dumps({"file_name": "a", "tags": ["x\u2028y", "é"]}, ensure_ascii=False)
    assert read_tags(file(".jsonl", row + "\n")).tags == [["x\u2028y", "é"]]


# --- refusing ---


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        (".csv", "file_name,tags\na,b\n\nname,caf\xe9\n".encode("latin-1"), "line 4: byte 0xe9 is"),
        (".csv", b"\xef\xbb\xbffile_name,tags\n\xff,x\n", "line 2: byte 0xff is not UTF-8"),
        (".csv", "file_name,tags\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8"),
        (".csv", "", "is empty. Its first line must name the columns"),
        (".csv", "image,tags\na,b\n", "line 1: there is no column file_name; found image, tags"),
        (".csv", "file_name;tags\na;b\n", "found file_name;tags. Separate columns by commas"),
        (".csv", "file_name,tags,tags\n", "line 1: the column tags occurs twice"),
        (".csv", "file_name,tags\na,dog,cat\n", "line 2: found 3 cells where the header has 2"),
        (".csv", 'file_name,tags\n"a\nb",x\nc\n', "line 4: found 1 cells where the header has 2"),
        (".csv", 'file_name,tags\na,x\nb,"y\n', r"line 3: not CSV \(unexpected end of data\)"),
        (".csv", "file_name,tags\n,dog\n", "line 2: file_name is ''; expected an image's name"),
        (".jsonl", '{"file_name": "a", "tags": []}\n{"file_name"', r"line 2: not JSON \(Exp"),
        (".jsonl", "[1]\n", r"line 1: expected an object with file_name; found '\[1\]'"),
        (".jsonl", '\n{"tags": ["a"]}\n', "line 2: file_name is None"),
        (".jsonl", '{"file_name": 3, "tags": ["a"]}\n', "line 1: file_name is 3"),
        (".jsonl", '{"file_name": "a", "tags": {}}', "tags is {}; expected a list of texts"),
        (".jsonl", '{"file_name": "a", "tags": ["b", 1]}', r"line 1: tags is \['b', 1\]; expected"),
        (".jsonl", '{"file_name": "a"}', "no column of tags; found file_n"),
        (
            ".jsonl",
            '{"file_name": "a", "tags": [' + "[]," * 400_000 + "[]]}",
            "line 1: it has more",
        ),
        (".xlsx", b"", "the suffix of a tag file must be .csv or .jsonl"),
    ],
)
def test_what_is_wrong_is_said_and_where(suffix, content, message, file):
    path = file(suffix, content)
    with pytest.raises(InvalidInput, match=message) as caught:
        read_tags(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_cannot_be_opened(tmp_path):
    with pytest.raises(StorageError, match="No such file"):
        read_tags(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(StorageError, match="Is a directory"):
        read_tags(tmp_path / "folder.csv")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_file_of_holes_takes_no_memory(suffix, tmp_path):
    path = tmp_path / f"tags{suffix}"
    with path.open("wb") as file:
        file.truncate(900_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="more than 134,217,728 bytes"):
            read_tags(path)
        assert tracemalloc.get_traced_memory()[1] < 300_000_000
    finally:
        tracemalloc.stop()


def test_a_file_that_nobody_named_is_none_behind_a_link(tmp_path):
    inside, outside = tmp_path / "photos", tmp_path / "passwd"
    inside.mkdir()
    outside.write_text("root:x:0:0\n")
    (inside / "metadata.csv").symlink_to(outside)
    assert find_tag_file(inside) is None
    (inside / "other.jsonl").write_text("{}")
    (inside / "metadata.jsonl").symlink_to("other.jsonl")
    assert find_tag_file(inside) == inside / "metadata.jsonl"
    (tmp_path / "link").symlink_to(inside)
    assert find_tag_file(tmp_path / "link") == tmp_path / "link" / "metadata.jsonl"


# --- there and back ---


def random_table(seed):
    rng = np.random.default_rng(seed)
    letters = list("ab |,\"\n\r\t\\'{é漢\u2028\ufeff\x00😀=")  # ; separates tags in CSV

    def word():
        return "".join(letters[i] for i in rng.integers(len(letters), size=rng.integers(1, 6)))

    names = list(dict.fromkeys(word() for _ in range(20)))
    return TagTable(names, [[word() for _ in range(rng.integers(0, 4))] for _ in names])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("seed", range(20))
def test_there_and_back_is_exact(seed, suffix, tmp_path):
    table = random_table(seed)
    path = tmp_path / f"tags{suffix}"
    write_tag_file(path, table)
    assert read_tags(path) == table


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize(
    "tags",
    [[], [[]], [["red, white"]], [["animal|dog"], ["x"]], [["a,b"], []], [["a", "b"], []]],
)
def test_there_and_back_where_separators_could_mislead(tags, suffix, tmp_path):
    table = TagTable([f"{i}.jpg" for i in range(len(tags))], tags)
    path = tmp_path / f"tags{suffix}"
    write_tag_file(path, table)
    assert read_tags(path) == table


def test_a_table_feeds_a_vocabulary(tmp_path):
    write_tag_file(tmp_path / "tags.csv", TABLE)
    vocabulary = Vocabulary()
    Y = vocabulary.fit_transform(read_tags(tmp_path / "tags.csv").tags)
    assert vocabulary.names_ == ["dog", "traffic light"]
    assert Y.toarray().tolist() == [[1, 1], [0, 0]]
