"""A run from config to report: one folder that says what was trained, how it went and what it cost."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.runs.compare import check_same_config, compare_runs, comparison_text
    from course_lib.runs.components import build_components, build_model, load_data
    from course_lib.runs.config import (
        AUTO,
        BUILT_IN_DATA,
        CHOICES,
        WITHOUT_EFFECT,
        TrainConfig,
        known_keys,
        read_config,
    )
    from course_lib.runs.dashboard import dashboard_html, read_runs
    from course_lib.runs.export import export_run
    from course_lib.runs.folder import RunFolder
    from course_lib.runs.health import health_text
    from course_lib.runs.predict import Predictor
    from course_lib.runs.train import plan_training, run_training

__getattr__, __dir__, __all__ = attach(__name__, __file__)
