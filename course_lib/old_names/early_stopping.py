from course_lib.training.callbacks import EarlyStopping as EarlyStopping
