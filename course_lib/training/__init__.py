"""A stranger's own training loop: steps, evaluation, callbacks, checkpoints, precision, optimizers, schedules."""
