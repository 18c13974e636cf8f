"""Lists of tags, one on each line."""

from tagkin.collection import read_tag_list


def test_a_list_of_tags_with_levels(tmp_path):
    path = tmp_path / "words.txt"
    text = "\ufeff# mine\r\n\r\nsea\r\nanimal | dog\r\n  two  words\r\nsea\r\n"
    path.write_bytes(text.encode())
    assert read_tag_list(path) == ["sea", "animal|dog", "two words"]
