"""The faces of the type: what is written with a fixed width has it, figures too, whatever fonts the machine has."""

from tests.board.conftest import Visit

WIDTHS = """
() => ['0123', '####', 'abcd'].map(text => {
    const line = document.createElement('code');
    line.textContent = text;
    document.body.append(line);
    const width = line.getBoundingClientRect().width;
    line.remove();
    return width;
})
"""


def test_figures_are_as_wide_as_letters_where_the_width_is_fixed(visit: Visit) -> None:
    figures, signs, letters = visit("/", live=False).evaluate(WIDTHS)
    assert figures == signs == letters
