"""Write a WordNet of a few synsets in the official format, with obvious similarities.

Counts are powers of two out of a total of 64, so that information contents are whole bits, noted
in comments; the unit cancels in a similarity.
"""

from pathlib import Path

from tagkin.paper.wordnet import WordNet

# name -> words, hypernyms ("@i" marks an instance), own count of the first word, its bits
SYNSETS = {
    "entity": (["entity"], [], 0),  # 0 bits
    "animal": (["animal"], ["entity"], 7),  # 32 of 64: 1 bit
    "artifact": (["artifact"], ["entity"], 4),  # 32 of 64: 1 bit
    "dog": (["dog", "domestic_dog"], ["animal"], 6),  # 8: 3 bits
    "rex": (["Rex"], ["@i dog"], 2),  # 2: 5 bits
    "cat": (["cat", "pet"], ["animal"], 8),  # 8: 3 bits
    "bat": (["bat"], ["animal"], 4),  # 4: 4 bits
    "ox": (["ox", "Bos"], ["animal"], 4),  # 4: 4 bits
    "human": (["man", "pet"], ["animal"], 1),  # 1: 6 bits
    "club": (["bat", "club"], ["artifact"], 8),  # 8: 3 bits
    "racket": (["racket"], ["artifact"], 8),  # 8: 3 bits
    "light": (["traffic_light"], ["artifact"], 4),  # 4: 4 bits
    "jersey": (["jersey", "T-shirt"], ["artifact"], 4),  # 4: 4 bits
    "phone": (["cellphone"], ["artifact"], 1),  # 1: 6 bits
    "knife": (["knife"], ["artifact"], 1),  # 1: 6 bits
    "butter_knife": (["butter_knife"], ["knife"], 0),  # never seen
    "staff": (["men"], ["entity"], 0),  # never seen
    "boss": (["boss"], ["animal"], 0),  # never seen
    "gas": (["gas"], ["artifact"], 1),  # 1: 6 bits
    "ga": (["Ga"], ["artifact"], 1),  # 1: 6 bits
    "cryptid": (["cryptid"], ["animal"], 0),  # never seen
    "yeti": (["yeti"], ["cryptid"], 0),
    "nessie": (["nessie"], ["cryptid"], 0),
}
LICENCE = "  1 This software and database is being provided to you, the LICENSEE, by  \n"
PLURALS = "oxen ox\nknives knife\nchildren child\n"


def offset(name: str) -> int:
    """The offset of a synset: a name like any other, and not where its line stands."""
    return 1740 + 111 * list(SYNSETS).index(name)


def write_wordnet(folder: Path, line_end: str = "\n") -> Path:
    """Write data.noun, index.noun, noun.exc and ic-brown.dat, and a verb and an adjective."""
    folder.mkdir(parents=True)
    senses: dict[str, list[str]] = {}
    data = []
    counts = dict.fromkeys(SYNSETS, 0)
    for name, (words, above, count) in SYNSETS.items():
        parts = [f"{offset(name):08d} 03 n {len(words):02x}"]
        for word in words:
            lex_id = len(senses.setdefault(word.lower(), []))
            senses[word.lower()].append(name)
            parts.append(f"{word} {lex_id:x}")
        for other in _with_ancestors(name):
            counts[other] += count
        parts.append(f"{len(above) + 1:03d}")
        for pointer in above:
            symbol, _, target = pointer.rpartition(" ")
            parts.append(f"{symbol or '@'} {offset(target):08d} n 0000")
        parts.append('+ 00000042 v 0101 | a thing | as said of things; "so it is"  ')
        data.append(" ".join(parts))
    index = [
        f"{word} n {len(names)} 2 @ ~ {len(names)} 0 "
        + " ".join(f"{offset(name):08d}" for name in names)
        + "  "
        for word, names in sorted(senses.items())
    ]
    write_counts(folder / "ic-brown.dat", **counts)
    for file, lines in {"data.noun": data, "index.noun": index}.items():
        text = LICENCE + "\n".join(lines) + "\n"
        (folder / file).write_bytes(text.replace("\n", line_end).encode())
    for file, word in {"index.verb": "bark v", "index.adj": "angry a"}.items():
        text = f"{LICENCE}{word} 1 1 @ 1 0 00000042  \n"
        (folder / file).write_bytes(text.replace("\n", line_end).encode())
    (folder / "noun.exc").write_bytes(PLURALS.replace("\n", line_end).encode())
    return folder


def _with_ancestors(name: str) -> set[str]:
    above = (pointer.rpartition(" ")[2] for pointer in SYNSETS[name][1])
    return {name}.union(*map(_with_ancestors, above))


def write_counts(file: Path, **counts: int) -> Path:
    """Write an information content file that has the same count for all but the named."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{offset(name)}n {counts.get(name, 1)}" for name in SYNSETS]
    lines[0] += " ROOT"
    file.write_text("\n".join(["wnver::abc", *lines, "1740v 99 ROOT"]) + "\n")
    return file


def names(wordnet: WordNet, word: str) -> list[str]:
    """The names that the synthetic WordNet has for a word's synsets."""
    by_offset = {offset(name): name for name in SYNSETS}
    return [by_offset[sense] for sense in wordnet.senses(word)]
