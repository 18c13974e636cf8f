"""Pages as a browser reads them."""

import re
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "img", "br", "rect", "line", "path", "use", "image", "polyline"}


class Page(HTMLParser):
    """Elements and texts of a page whose elements all have their ends in the right order."""

    def __init__(self, path):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.source = Path(path).read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def all(self, tag, **wanted):
        return [a for t, a in self.elements if t == tag and wanted.items() <= a.items()]

    def headings(self):
        return re.findall(r"<h2>(.*?)</h2>", self.source)
