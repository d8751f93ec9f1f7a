"""What every room may use: errors, files, caches, settings as text, the machine, figures and live output."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.base.cache import cache_dir, digest, installed_version, project_version
    from course_lib.base.errors import UserError, require
    from course_lib.base.figures import COLOURS, cell, draw, duration, render
    from course_lib.base.files import (
        BUILDING,
        atomic_directory,
        atomic_file,
        atomic_write_text,
        remove_leftovers,
        to_json,
    )
    from course_lib.base.keys import Key, KeysDoc, keys_page, keys_text, read_keys
    from course_lib.base.live import LiveOutput, in_kernel, progress_bar, say
    from course_lib.base.machine import (
        environment,
        hardware,
        memory_bytes,
        on_device,
        processor_name,
        reset_peak_memory,
        resolve_device,
    )
    from course_lib.base.nests import is_nest, leaves, map_leaves
    from course_lib.base.settings import as_field, check_keys, read_yaml, to_yaml

__getattr__, __dir__, __all__ = attach(__name__, __file__)
