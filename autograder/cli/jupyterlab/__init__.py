"""JupyterLab with our settings."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.cli.jupyterlab.server import HOST, open_here, running_lab
    from autograder.cli.jupyterlab.settings import write_settings
    from autograder.cli.jupyterlab.starting import FIRST_PORT, choose_port, start

__getattr__, __dir__, __all__ = attach(__name__, __file__)
