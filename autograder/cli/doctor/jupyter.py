"""Looks at Jupyter, by running it as `workbook start` does."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import re
import socket
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from autograder.cli.doctor.findings import Found, reinstall, set_variable
from autograder.cli.jupyterlab import FIRST_PORT, HOST, choose_port, open_here, running_lab, write_settings
from course_lib.base import UserError

KERNEL_SECONDS = 60
_MANAGER = "@jupyter-widgets/jupyterlab-manager"


def kernel() -> Found:
    """Start the kernel that notebooks get, beside the learner's notebooks, run a line in it, and see whose it is."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import KernelManager

    from autograder.common import START_PAGE, default_folder

    notebooks = default_folder() / START_PAGE.parent
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as said:
        write_settings(Path(name))
        specs = KernelSpecManager(kernel_dirs=[str(Path(name, "kernels"))])
        manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs)
        manager.start_kernel(stderr=said, cwd=str(notebooks) if notebooks.is_dir() else name)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=KERNEL_SECONDS)
            asked = {"autograder": "__import__('autograder').__file__"}
            answer = client.execute_interactive(
                "", user_expressions=asked, timeout=KERNEL_SECONDS, store_history=False
            )
        except RuntimeError:  # it died, or does not answer
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines() or ["it left no message"]
            return "fail", f"does not start: {lines[-1][:200]}", reinstall()
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    found = answer["content"].get("user_expressions", {}).get("autograder", {})
    if found.get("status") != "ok":
        return "fail", f"cannot import autograder: {found.get('evalue')}", reinstall()
    return _others() or ("ok", "starts and runs a cell", "")


def _others() -> Found | None:
    """A kernel `python3` of another Python, which a Jupyter or an editor opened by other means would take."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return None
    python = spec.argv[0] if spec.argv else ""
    if python in ("python", "python3") or Path(python).absolute() == Path(sys.executable).absolute():
        return None
    found = f"starts with `workbook start`, but elsewhere `python3` is another Python: {python}"
    return (
        "note",
        found,
        f'"{sys.executable}" -m jupyter kernelspec remove -f python3',
    )


@functools.cache
def _page() -> tuple[dict[str, Any], str]:
    """What the server tells JupyterLab in the browser; or nothing, and why it did not."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
        probe.close()
        try:
            with running_lab(Path(name), "/lab", port=port, token="doctor", layouts=Path(name)) as server:
                page = open_here(f"{server.address}/lab?token=doctor", timeout=30).decode()
        except (UserError, OSError) as error:
            return {}, str(error).removesuffix(" (workbook doctor may know more)")
    found = re.search(r'<script id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    return (json.loads(found[1]), "") if found else ({}, "the server answers, but not with JupyterLab")


def lab() -> Found:
    """Start the server, and have it show its page."""
    _, problem = _page()
    if problem:
        return "fail", problem, reinstall()
    return "ok", f"jupyterlab {importlib.metadata.version('jupyterlab')} starts and shows its page", ""


def widgets() -> Found:
    """Whether JupyterLab gets its side of the widgets."""
    page, problem = _page()
    if problem:
        return "note", "not known before JupyterLab starts", ""
    versions = f"ipywidgets {importlib.metadata.version('ipywidgets')}"
    if _MANAGER not in [extension["name"] for extension in page["federated_extensions"]]:
        fix = f'"{sys.executable}" -m pip install --force-reinstall --no-deps jupyterlab_widgets'
        return "fail", f"{versions}, but JupyterLab's side of the widgets is missing", fix
    if any(name.partition(":")[0] == _MANAGER for name in page.get("disabledExtensions", [])):
        fix = f'"{sys.executable}" -m jupyter labextension enable {_MANAGER}'
        return "fail", f"{versions}, but JupyterLab's side of the widgets is switched off", fix
    return "ok", versions, ""


def port() -> Found:
    """Which port `workbook start` would take."""
    free = choose_port(None)
    if free == FIRST_PORT:
        return "ok", f"{free} is free", ""
    found = f"{FIRST_PORT} is taken, perhaps by another Jupyter; `workbook start` takes {free}"
    return "ok", found, ""


def proxy() -> Found:
    """Whether a browser, or a notebook, would ask a proxy for what is on this machine."""
    if not urllib.request.getproxies_environment() or urllib.request.proxy_bypass(HOST):
        return "ok", "none stands between you and this machine", ""
    found = f"a proxy is set, and {HOST} is not excepted: the browser may not reach JupyterLab"
    return "note", found, set_variable("NO_PROXY", f"localhost,{HOST}")
