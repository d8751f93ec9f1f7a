"""What differs from JupyterLab's own settings, for the server of `workbook start` alone.

Everything is written to a folder that lives as long as the server, except the layout, which is the learner's. They
are defaults: what the user has set for themselves in JupyterLab wins, and their other Jupyter is left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

#: JupyterLab's pop-up that asks to follow its news has no place before a learner's first page; the menus and buttons
#: of nbgrader are the instructor's. The rest takes room at 1280 pixels and no lesson uses it.
DISABLED = (
    "@jupyterlab/apputils-extension:announcements",
    "@jupyterlab/application-extension:property-inspector",
    "@jupyterlab/debugger-extension",
    "@jupyterlab/extensionmanager-extension",
    "@jupyter/nbgrader",
    "@jupyter-notebook/lab-extension",  # opens the page in another interface, without these settings
    "jupyterlab-jupytext",  # pairing would keep a second copy of the learner's answers
)
#: The parts of the server that only those use.
_DISABLED_SERVER_PARTS = (
    "jupyterlab_jupytext",
    "nbgrader.server_extensions.assignment_list",
    "nbgrader.server_extensions.course_list",
    "nbgrader.server_extensions.formgrader",
    "nbgrader.server_extensions.validate_assignment",
)
_THEMES = "@jupyterlab/apputils-extension:themes"
OVERRIDES: dict[str, dict[str, Any]] = {
    _THEMES: {"adaptive-theme": True},  # light or dark as the system is
    "@jupyterlab/docmanager-extension:plugin": {"autosaveInterval": 30},  # seconds; JupyterLab's own is 120
    "@jupyterlab/filebrowser-extension:browser": {"showLastModifiedColumn": False},  # room for the names
    "@jupyterlab/notebook-extension:tracker": {
        # A traceback names lines. At 1280 pixels some lines of code are longer than a cell is wide.
        "codeCellConfig": {"lineNumbers": True, "lineWrap": True},
    },
    "@jupyterlab/toc-extension:registry": {"includeOutput": False},  # headings of a result are no sections
}
#: The table of contents in front on the left, the files one click behind it: a second side bar would squeeze the text.
_LAYOUT = {
    "left": {
        "collapsed": False,
        "visible": True,
        "current": "@jupyterlab/toc:plugin",
        "widgets": ["filebrowser", "running-sessions", "@jupyterlab/toc:plugin"],
    },
    "right": {"collapsed": True, "visible": True, "widgets": []},
    "relativeSizes": [0.2, 0.8, 0],
}
#: As jupyterlab_server names the file of the layout `default`; its own function takes a second to import.
_LAYOUT_FILE = "default-37a8.jupyterlab-workspace"


def write_settings(folder: Path) -> dict[str, str]:
    """Write the settings into `folder`, and return the environment variables that make Jupyter read them.

    The kernel `python3` becomes the Python that runs this, whatever else is registered under that name.
    """
    server_parts = dict.fromkeys(_DISABLED_SERVER_PARTS, False)
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3 (ipykernel)",  # as the notebooks say, which so stay unchanged
        "language": "python",
    }
    for name, content in {
        "labconfig/page_config.json": {"disabledExtensions": dict.fromkeys(DISABLED, True)},
        "labconfig/default_setting_overrides.json": _overrides(),
        "jupyter_server_config.json": {"ServerApp": {"jpserver_extensions": server_parts}},
        "kernels/python3/kernel.json": spec,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return {name: _first(folder, name) for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH")}


def _overrides() -> dict[str, dict[str, Any]]:
    """Ours, without the theme for somebody who has chosen one: the system's would go before it."""
    from jupyter_core.paths import jupyter_config_dir

    package, _, plugin = _THEMES.partition(":")
    own = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or Path(jupyter_config_dir(), "lab", "user-settings")
    chosen = Path(own, package, f"{plugin}.jupyterlab-settings")  # JSON with comments
    with contextlib.suppress(OSError):
        if '"theme"' in chosen.read_text(encoding="utf-8", errors="replace"):
            return {name: settings for name, settings in OVERRIDES.items() if name != _THEMES}
    return OVERRIDES


def _first(folder: Path, variable: str) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get(variable)]))


def lab_arguments(layouts: Path) -> list[str]:
    """Arguments for JupyterLab: our extension, and a folder for the layout apart from the user's other Jupyter.

    A new folder gets a first layout. One that cannot be written costs only that.
    """
    first = layouts / _LAYOUT_FILE
    with contextlib.suppress(OSError):
        layouts.mkdir(parents=True, exist_ok=True)
        if not first.exists():
            content = {"data": {"layout-restorer:data": _LAYOUT}, "metadata": {"id": "default"}}
            first.write_text(json.dumps(content), encoding="utf-8")
    return [
        f"--LabApp.extra_labextensions_path={Path(__file__).with_name('labextension')}",
        f"--LabApp.workspaces_dir={layouts}",
    ]
