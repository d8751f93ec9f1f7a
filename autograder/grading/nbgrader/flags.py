"""Reasons for a person to look at a solution are for whoever teaches. They stand on the graded notebook, which
formgrader shows, and go from the page that a student gets, unless the course has them there:

    c.Flags.on_students_pages = True        in nbgrader_config.py
"""

from __future__ import annotations

import re

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, List

# As `result.html` writes them: nothing in one ends it, for what it quotes is escaped.
_FLAG = re.compile(r'<div class="workbook-flag">.*?</div>\s*', re.DOTALL)


class Flags(NbGraderPreprocessor):
    """Takes the flags from the cards of a notebook that goes back to its student."""

    on_students_pages = Bool(False, help="Whether students see why a person should look at a solution.").tag(
        config=True
    )

    # nbconvert's page sets it for all steps, and warns where it is not
    display_data_priority = List().tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        if not self.on_students_pages:
            for cell in nb.cells:
                for output in cell.get("outputs", []):
                    shown = output.get("data", {})
                    if "text/html" in shown:
                        shown["text/html"] = _FLAG.sub("", "".join(shown["text/html"]))
        return nb, resources
