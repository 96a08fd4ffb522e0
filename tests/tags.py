"""The tags of a page: which there are, what they ask for, and that they are closed in their order."""

from html.parser import HTMLParser

ALONE = ("meta", "br")
ASKING = ("src", "href", "srcset", "action", "data")


class Tags(HTMLParser):
    """Every tag, every id, and everything that a tag links or loads."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.ids, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ASKING]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def tags(page):
    """Those of a page, all of which are closed."""
    parser = Tags()
    parser.feed(page)
    assert parser.open == []
    return parser
