"""Pages in Markdown, from the templates in the folder `templates`."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def fill_template(name: str, **values: Any) -> str:
    """The text of a template with these values."""
    # The pages are Markdown, in which nothing is escaped but the bars in cells of tables.
    environment = Environment(
        loader=PackageLoader("deferlearn.experiments"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
    )
    return environment.get_template(name).render(values).rstrip() + "\n"
