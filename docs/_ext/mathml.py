"""Formulas as MathML, made when the pages are built: they show without a network and without scripts."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert


def inline(writer, node):
    """A formula within a sentence."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(writer, node):
    """A formula on a line of its own."""
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Make sphinx use it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
