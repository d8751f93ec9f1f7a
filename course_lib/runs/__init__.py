"""A run from config to report: one folder that says what was trained, how it went and what it cost."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.runs.checks import METRICS
    from course_lib.runs.compare import check_same_config, compare_runs, comparison_text
    from course_lib.runs.components import build_components, build_model, load_data
    from course_lib.runs.config import (
        AUTO,
        BUILT_IN_DATA,
        CHOICES,
        DEFAULT_MONITORS,
        FRAME,
        WITHOUT_EFFECT,
        TrainConfig,
        config_keys,
        known_keys,
        read_config,
    )
    from course_lib.runs.folder import RunFolder
    from course_lib.runs.train import plan_training, run_training
    from course_lib.runs.using.evaluate import evaluate_run
    from course_lib.runs.using.export import export_run
    from course_lib.runs.using.pages import evaluation_html, evaluation_text
    from course_lib.runs.using.predict import Predictor
    from course_lib.runs.using.tables import predict_table, predict_texts
    from course_lib.runs.using.writing import as_objects, check_out, write_table
    from course_lib.runs.watching.dashboard import dashboard_html, read_runs
    from course_lib.runs.watching.health import health_text

__getattr__, __dir__, __all__ = attach(__name__, __file__)
