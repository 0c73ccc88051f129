"""What the tests ask of any picture: nothing hidden, nothing cut off."""


def legend_texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def assert_nothing_overlaps(display):
    """The legend lies inside the figure, and touches neither the axes nor what is written along them."""
    figure, ax = display.figure_, display.ax_
    figure.draw_without_rendering()  # which arranges the parts; the canvas of a bare figure does nothing
    box = display.legend_.get_window_extent()
    whole = figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    for part in (ax.get_window_extent(), ax.xaxis.get_tightbbox(), ax.yaxis.get_tightbbox()):
        assert not box.overlaps(part)
    labels = ax.xaxis.label.get_window_extent()
    assert whole.x0 <= labels.x0 < labels.x1 <= whole.x1
