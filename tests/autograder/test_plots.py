"""The figures of the lessons: the right size, a text for each, silent."""

import base64
import re
import struct
import subprocess
import sys

import pytest

from autograder.show import plots


def test_image_carries_escaped_alt_text_and_is_drawn_for_sharp_screens() -> None:
    fig, ax = plots.figure(height=2.0, width=5.0)
    plots.bars(ax, ["a", "b"], [1.0, 2.5], unit="×")
    image = plots.to_html(fig, alt='1 < 2.5, "b" wins')
    assert 'alt="1 &lt; 2.5, &quot;b&quot; wins"' in image
    match = re.search(r"base64,([^\"]+)\"", image)
    assert match
    data = base64.b64decode(match.group(1))
    width, height = struct.unpack(">II", data[16:24])  # the PNG header's own numbers
    assert (width, height) == (2 * 96 * 5, 2 * 96 * 2)
    assert 'width="480"' in image


@pytest.mark.parametrize("alt", ["", "   "])
def test_a_figure_without_text_is_refused(alt: str) -> None:
    fig, _ = plots.figure()
    with pytest.raises(ValueError, match="alt text"):
        plots.to_html(fig, alt)


def test_bars_write_their_values() -> None:
    _, ax = plots.figure()
    plots.bars(ax, ["one", "two", "three"], [12.34, 5.0, 1000.0], unit="%")
    assert [text.get_text() for text in ax.texts] == ["12.3 %", "5.0 %", "1,000.0 %"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one", "two", "three"]


def test_nothing_reaches_stderr_and_pyplot_stays_out(tmp_path: object) -> None:
    code = (
        "import sys; from autograder import plots; assert 'matplotlib' not in sys.modules;"
        "fig, ax = plots.figure(1, 2); plots.mark(ax[0], 0.5, 'half'); plots.to_html(fig, 'two axes');"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "MPLCONFIGDIR": str(tmp_path)},  # no font cache yet: the noisy case
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
