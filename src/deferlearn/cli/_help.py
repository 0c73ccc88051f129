"""How the help of commands is printed."""


def unwrapped(text: str | None) -> str:
    r"""Paragraphs as one line each, because a terminal breaks lines by itself.

    Parameters
    ----------
    text : str or None
        A docstring.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from deferlearn.cli._help import unwrapped
    >>> unwrapped("One\n    line.\n\n    Another.")
    'One line.\n\nAnother.'
    """
    paragraphs = (text or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
