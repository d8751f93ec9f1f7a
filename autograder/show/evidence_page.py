"""An evidence file as a page for people: the verdict and its reason, the measurement, and what it was made on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from autograder.common import Result, shortened
from autograder.show.card import result_html
from autograder.show.rich import render

MAX_SOURCE_BYTES = 100_000  # of the page; the record keeps all of it, for it is what is checked again


def page(record: Mapping[str, Any], result: Result) -> str:
    """The record of an evidence file as HTML that needs no other file, no network and no script; at most 1 MB."""
    shown = dict(record, source=shortened(record["source"], MAX_SOURCE_BYTES))
    return render("evidence.html", **shown, card=Markup(result_html(result)), exp=math.exp)
