"""An evidence file as a page for people: the verdict and its reason, the measurement, and what it was made on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from autograder.common import Result
from autograder.show.card import result_html
from autograder.show.rich import render


def page(record: Mapping[str, Any], result: Result) -> str:
    """The record of an evidence file as HTML that needs no other file, no network and no script."""
    card = Markup(result_html(result))
    html = render("evidence.html", **record, card=card, exp=math.exp)
    return html.encode("utf-8", "backslashreplace").decode("utf-8")  # a notebook may hold half a character
