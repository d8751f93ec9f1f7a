"""What lesson 04's exercises say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

_CHECKPOINT: Claims = {
    "The check trains in one process": EXPLAINS,
    "The result must equal the uninterrupted run, bit for bit.": (
        "all of the model in 32 bits",
        "loads into a copy of the optimizer",
    ),
    "Its training step draws from": EXPLAINS,
    "Last, your `load` gets a file from a stranger.": EXPLAINS,
    "A run in one file: all that its next step depends on.": ("model weights only", "a file beside it"),
    "Each part has `state_dict()` and `load_state_dict(state)`; all states are tensors and plain values.": (
        "pickled model object",
        "the moments without the groups",
        "parameters without buffers",
    ),
    "The run also draws from Python's `random`, from NumPy's global generator (`np.random…`) and from torch's; it runs "
    "on a CPU.": (
        "Python's generator forgotten",
        "NumPy's generator forgotten",
        "torch's generator forgotten",
        "Python's second normal number lost",
        "NumPy's second normal number lost",
    ),
    "self, *, model: Any, optimizer: Any, scheduler: Any, scaler: Any, sampler: Any": (
        "model forgotten",
        "model weights only",
        "scheduler forgotten",
        "scaler forgotten",
        "sampler position forgotten",
    ),
    "def save(self, path: Path, step: int) -> None:": ("the step as a 32-bit number",),
    "Write everything into the one file `path`.": (
        "a suffix of its own",
        "a file beside it",
        "a copy beside it",
        "appended to the older save",
        "written over the beginning of the older file",
        "nothing written where a file is",
    ),
    "The run goes on as if nothing had happened.": (
        "saving draws a number",
        "saving seeds the generators",
        "saving leaves the model in training mode",
        "saving clears the gradients",
        "saving rounds the weights",
        "saving turns gradients off",
        "saving switches to deterministic algorithms",
    ),
    "Raises an error where the file cannot be written.": ("an error of save swallowed",),
    "Raises one where there is no file, or not all of one.": (
        "an error of load swallowed",
        "an error of a part swallowed",
        "records read until the file ends",
    ),
    "Put everything back into the parts given to `__init__`; returns the step that was saved.": (
        "the parts of the last object",
        "loads into a copy of the optimizer",
        "nothing put back where nothing was",
        "loading leaves the model in evaluation mode",
        "a generator put back before the parts",
        "the step not returned",
        "the step of the schedule",
        "no step where it is 0",
    ),
    "Whatever stands in the file, loading it runs no code from it: it may raise an error.": (
        "a load that trusts any file",
        "trusts what the safe load refuses",
        "a pickle inside a tensor",
        "a pickle with a checksum",
        "a pickle inside a text",
        "a trusted file inside a tensor",
        "a text that is evaluated",
        "a text in JSON that is evaluated",
    ),
}
_SAVE: Claims = {
    "The check looks at the file between any two calls": EXPLAINS,
    "Then it really kills processes that save, at random moments.": EXPLAINS,
    "And it lets a save fail half way, as on a full disk.": EXPLAINS,
    "`course_lib.base` has an `atomic_file`; the exercise is to write it once yourself.": EXPLAINS,
    "Save `checkpoint` so that `torch.load(path, weights_only=True)` gives it back.": (
        "only tensors saved",
        "a dict that it knows not saved again",
        "the checkpoint emptied once it is saved",
    ),
    "checkpoint: tensors and plain values, nested in dicts and lists.": ("saved in 32 bits",),
    "path: a file name in a folder that exists, on a disk of its own; often an older checkpoint has that name.": (
        "moved from another disk",
        "needs an older file",
        "a name that another file has",
        "files of others cleaned up",
    ),
    "At every moment, also when the process is killed, `path` is the old whole checkpoint or the new whole one.": (
        "overwriting in place",
        "the old file removed first",
        "copied into place",
        "a first save in place",
        "a suffix that the checkpoint may have",
        "one temporary name for all",
        "stopped by what a killed save has left",
    ),
    "When the function returns, it is the new one, forced to the disk (fsync) before it got its name.": (
        "no fsync",
        "fsync before the last byte",
        "fsync after the rename",
        "a thread that nobody waits for",
    ),
    "When saving fails, the error reaches the caller and `path` is what it was.": (
        "an error swallowed",
        "an error of fsync swallowed",
        "an error of the rename swallowed",
        "written in place where the rename fails",
        "Ctrl-C turned into another error",
        "an error at opening hidden",
        "a short write taken for a whole one",
        "removed first where the rename fails",
    ),
    "Except after a kill, which Ctrl-C is not, the function leaves no other file in the folder.": (
        "a temporary file left behind",
        "half a temporary file left on a full disk",
        "a temporary file left by Ctrl-C",
    ),
}
_STOPPING: Claims = {
    "A few lines, and a surprising number of ways to get them wrong.": EXPLAINS,
    "The check feeds 60 random sequences": EXPLAINS,
    "Says when `patience` validations in a row have not improved on the best one.": (
        "counter not reset",
        "patience off by one",
        "one counter for all objects",
    ),
    "monitor: name of the metric to watch.": ("watches the training loss",),
    'mode: "min", where lower is better, or "max".': ("mode inverted", "mode not used"),
    "patience: at least 1.": ("one late from patience 2 on",),
    "min_delta: at least 0; a value improves only when it is better than `best` by *more* than this.": (
        "an equal value counts",
        "min_delta not used",
        "a tolerance on top of min_delta",
        "a best of 0 is none",
    ),
    "The first value that is not NaN always improves.": ("an infinite first value is none",),
    "NaN never.": ("NaN becomes the best", "a NaN is skipped", "a NaN before the first best is skipped"),
    'monitor: str = "loss", mode: str = "min", patience: int = 3, min_delta: float = 0.0,': (
        "another default monitor",
        "another default mode",
        "another default patience",
        "another default min_delta",
    ),
    "self.best: float | None = None # the last value that improved": ("best moves with every change",),
    "self.best_step: int | None = None # the step given with it": (
        "the number of the validation for its step",
    ),
    "self.num_bad = 0 # validations in a row that have not improved": (
        "another counter than num_bad",
        "counts no further than patience",
    ),
    "def update(self, metrics: dict[str, float], step: int) -> bool:": ("no answer to an improvement",),
    "After a validation at `step`: True when the run should stop now.": ("says stop only once",),
    "The rule stays the same after a stop: the next one may be False.": ("says stop for ever",),
    "What a new object with the same settings needs to go on: plain values, as for JSON.": (
        "counter not in the state",
        "best not in the state",
        "best_step not in the state",
        "a tensor in the state",
        "best rounded in the state",
        "an infinite best not in the state",
        "best in the state in 32 bits",
    ),
    "Later updates change neither this state nor one that was loaded.": (
        "hands out its own dict",
        "works on the dict that was loaded",
    ),
    "def load_state_dict(self, state: dict[str, Any]) -> None:": ("a best of 0 not put back",),
    "Go on from what `state_dict` gave, and from nothing that was before.": (
        "nothing put back",
        "a best of 0 not put back",
        "an older best stays where none was saved",
    ),
}
_BUDGET: Claims = {
    "You get a run and decide how often it is validated and when it ends.": (
        "never stops",
        "validated at every step",
    ),
    "The check compares the test accuracy of your weights with that at the run's best step": (
        "gives up at the first bump",
    ),
    "Validations are not free: each counts as one step.": ("validated at every step",),
    "Yours are not exact either": EXPLAINS,
    "Some runs learn several times as fast as others.": ("a fixed number of steps",),
    "Train `run` as long as it pays, and leave the best weights in `run.model`.": (
        "a fixed number of steps",
        "too patient",
        "never trains",
    ),
    "raises ValueError where that would be more than `run.max_steps` in all": ("trains beyond the end",),
    "run.train(num_steps)": EXPLAINS,
    "run.validate()": EXPLAINS,
    '"train_loss", the mean over the last 20 steps': ("best chosen on train loss",),
    "run.model the model, an nn.Module": EXPLAINS,
    "run.num_steps, run.max_steps steps so far, and the most that there may be (400, or a few less)": (
        "400 steps in any run",
    ),
    "one that is NaN never is.": ("NaN hides the best before it", "a NaN that comes first stays the best"),
    "The best is the validation with the lowest validation loss;": (
        "best chosen on train loss",
        "best chosen on the accuracy",
        "mode inverted",
        "kept only when much better",
        "kept only when better by a ten-thousandth",
        "compared in 32 bits",
        "the first left out as a warm-up",
        "compared with the validation before",
    ),
    "At the end `run.model` has exactly the weights and buffers of that moment.": (
        "only the parameters kept",
        "final report from the last, not the best",
        "best kept without a copy",
        "put back only where it stops early",
        "best kept in 16 bits",
        "kept after further steps",
    ),
    'Returns {"best_step": …, "loss": …}: what that validation said.': (
        "no report",
        "report of another validation",
        "the number of the validation",
        "the training loss reported",
        "validated once more for the report",
    ),
}
_CADENCE: Claims = {
    "After each step the loop asks your policy whether to save now.": EXPLAINS,
    "There are two limits: at most `max_lost_seconds` of work may be at risk, and saves may take at most "
    "`max_overhead` of the time.": (
        "saves too late",
        "saves at every step",
        "the share of the work, not of all the time",
    ),
    "The check plays runs on simulated clocks": ("one state for all objects", "the dearest save for ever"),
    "Then a real clock times the pauses": EXPLAINS,
    "Says after each step whether it is time to save.": ("never saves", "counts steps, not seconds"),
    "max_lost_seconds: work since the last save that may be at risk.": ("saves too late",),
    "`is_due` must be True at the first step that passes it, or earlier.": (
        "one step late",
        "half as often where both limits hold",
    ),
    "max_overhead: share of the whole time that saves may take, such as 0.05.": (
        "5 % whatever is asked",
        "never looks at what a save costs",
        "the mean of all saves",
    ),
    "Where both limits cannot hold, or only just, this one does, and saves come as often as it allows (half as "
    "often will do).": (
        "the limit even where the budget cannot",
        "asks far too long for a slow disk",
    ),
    "clock: gives the seconds now, as `time.perf_counter` does.": ("no time for a clock at 0",),
    "No other clock counts.": ("reads a clock of its own",),
    "A save has just ended, and it took so many seconds.": ("the cost of the first save for ever",),
    "def saved(self, seconds: float) -> None:": (
        "never looks at what a save costs",
        "the dearer of the last save and the mean",
    ),
    "Also called before the first step.": ("the cost of the first save for ever",),
    "After a step: whether to save now.": ("forgets once it has said so",),
    "Called at every step, so it must cost nothing.": (
        "asking costs more than saving",
        "goes through all steps so far",
        "goes through all saves so far",
    ),
}

CLAIMS: dict[str, Claims] = {
    "4.1": _CHECKPOINT,
    "4.2": _SAVE,
    "4.3": _STOPPING,
    "4.4": _BUDGET,
    "4.5": _CADENCE,
}
