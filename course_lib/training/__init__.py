"""A stranger's own training loop: steps, evaluation, callbacks, checkpoints, precision, optimizers, schedules."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.training.callbacks import (
        Callback,
        EarlyStopping,
        InterruptBetweenSteps,
        StepProfiler,
        TrainState,
    )
    from course_lib.training.checkpoint import (
        Checkpointer,
        capture,
        different_conditions,
        load_checkpoint,
        restore,
    )
    from course_lib.training.evaluation import evaluate, evaluation_mode
    from course_lib.training.loop import fit, train_step
    from course_lib.training.memory import (
        apply_activation_checkpointing,
        compile_model,
        filling_micro_batch_size,
    )
    from course_lib.training.micro_batch import largest_micro_batch_size
    from course_lib.training.optim import (
        choose_optimizer,
        make_optimizer,
        resolve_epochs,
        resolve_optimizer,
    )
    from course_lib.training.precision import (
        FULL_PRECISION,
        Precision,
        computes_in_tf32,
        has_bf16_units,
        known_gain,
        resolve_precision,
    )
    from course_lib.training.registry import LR_SCALING_POWERS, OPTIMIZERS, PRECISIONS, SCHEDULES
    from course_lib.training.reproducibility import seed_everything, weights_sha256
    from course_lib.training.schedules import (
        make_schedule,
        plot_schedule,
        scaled_learning_rate,
        warmup_cosine,
    )
    from course_lib.training.scores import (
        MAX_MATRIX_LABELS,
        TaskLoss,
        classification_table,
        confused_pairs,
        confusion_matrix,
        evaluation_summary,
        macro_f1,
        perplexity,
        task_loss,
    )
    from course_lib.training.window import MicroBatches, NonFiniteError, to_device

__getattr__, __dir__, __all__ = attach(__name__, __file__)
