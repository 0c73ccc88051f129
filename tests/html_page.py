"""A page as a parser sees it."""

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """Elements with their attributes and their text; refuses what is not nested properly."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.open, self.elements = [], []
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, name, attributes):
        element = {"tag": name, "text": "", **dict(attributes)}
        self.elements.append(element)
        if name not in VOID:
            self.open.append(element)

    def handle_startendtag(self, name, attributes):
        self.elements.append({"tag": name, "text": "", **dict(attributes)})

    def handle_endtag(self, name):
        assert self.open.pop()["tag"] == name

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def tables(self):
        """The cells of each table, row by row, by its name."""
        found = {}
        for element in self.elements:
            if element["tag"] == "table":
                found[element["aria-label"]] = rows = []
            elif element["tag"] == "tr":
                rows.append([])
            elif element["tag"] in ("td", "th"):
                rows[-1].append(element)
        return {
            name: [[" ".join(cell["text"].split()) for cell in row] for row in own]
            for name, own in found.items()
        }

    def all(self, name, **attributes):
        return [
            element
            for element in self.elements
            if element["tag"] == name and attributes.items() <= element.items()
        ]

    def one(self, name, **attributes):
        (element,) = self.all(name, **attributes)
        return element
