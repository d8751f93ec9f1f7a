"""What the exercises of lesson 07 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

_TRACE: Claims = {
    "Read a trace.": EXPLAINS,
    "Its events are dicts, in no particular order.": ("steps in the order of the list",),
    "Of all kinds of events you need three:": ("memory copies counted as kernels",),
    '`"user_annotation"` | a range on the host: a step, `ProfilerStep#12`, or a stage, `stage: forward`': (
        "the GPU's copies counted too",
    ),
    '`"cuda_runtime"` | the host queues a kernel': ("the length of the launches",),
    "or several with one call (a graph)": ("one kernel of a launch", "the first kernel of a launch"),
    '`"kernel"` | the GPU runs it, perhaps much later': (
        "timing CUDA without a sync: by the moment when a kernel runs",
    ),
    "`ts` (start) and `dur` (length) are in **microseconds**.": ("a time without its unit",),
    "its launch, with the same correlation, lies inside that range.": (
        "launches found by their name",
        "kernels between two steps for the one before",
    ),
    "A kernel belongs to the step and the stage in which it was *queued*": (
        "timing CUDA without a sync: the host's ranges",
        "timing CUDA without a sync: by the moment when a kernel runs",
    ),
    "When it runs, the host may be two stages further.": EXPLAINS,
    "Mean seconds a step, by stage, on the host and on the device.": ("sums in place of means",),
    'events: the "traceEvents" of a trace, in any order.': (
        "steps in the order of the list",
        "steps sorted by name",
    ),
    'Ranges of `cat` "user_annotation" named': ("the GPU's copies counted too",),
    '"ProfilerStep#<number>" are steps': ("every range with a number taken for a step",),
    'those named "stage: <name>" are stages': ("every other range taken for a stage",),
    "inside one step, and a step may have several of one name.": (
        "one range of a name in a step",
        "the last range of a name",
    ),
    "Other events may be there too.": (
        "memory copies counted as kernels",
        "every range with a number taken for a step",
    ),
    "num_warmup_steps: so many steps, the earliest ones, do not count.": (
        "averaging over warm-up steps",
        "two warm-up steps, whatever is asked for",
        "the last steps dropped",
        "steps sorted by name",
    ),
    "Returns, all times in seconds and as means over the steps that count:": (
        "milliseconds",
        "sums in place of means",
        "means over the steps that have the stage",
        "nothing returned",
    ),
    '"num_steps" how many count': ("all steps counted in the number",),
    '"step_time" length of a step\'s range': ("from the first step to the last",),
    '"host" {stage: length of its ranges}, and "other": step_time less all of them': (
        "other is what no stage of the model takes",
        "the last range of a name",
    ),
    '"device" {stage: length of the kernels that were queued inside its ranges}, and': (
        "the length of the launches",
        "one kernel of a launch",
        "timing CUDA without a sync: the host's ranges",
    ),
    '"other": of those queued in the step, but in no stage.': ("kernels of no stage left out",),
    "0.0 without a GPU": ("device times of a GPU alone",),
    "All five stages are there, also those that never occur.": ("stages that never occur left out",),
    "The events stay as they are.": ("events sorted in place",),
}

_COST: Claims = {
    "A log holds everything that happened, over several *sessions*": ("only the last session",),
    "All of it was paid for: loading and compiling at each start, and the work that was lost with a session too.": (
        "compile time hidden",
        "compile time counted once for all sessions",
        "the work of ended sessions not paid",
    ),
    "Paid seconds, hours and money up to the first validation that is at `target` or better.": (
        "the best value",
        "better than the target",
        "a loss at the target is not enough",
        "the direction ignored",
        "the whole run, as one who optimises epoch time would report it",
        "0.0 taken for no value",
    ),
    "higher_is_better: bool": ("the direction ignored", "the direction by the metric's name"),
    "records, in order; `kind` says which keys there are:": ("only the last session",),
    '"start" "seconds": loading and compiling, before the first step of a session. Paid': (
        "compile time hidden",
        "start-ups of later sessions too",
    ),
    '"train" "session_seconds": since the first step of this session': ("values of training",),
    '"validation" "session_seconds", and the metric under the name `monitor` (or None, or NaN)': (
        "another metric",
        "NaN taken for a value",
        "None compared",
    ),
    "The records stay as they are.": ("the log used up", "a metric filled in for None"),
    '"stop" "session_seconds": the session ended here; the next record is a "start"': (
        "a session up to its last record",
        "the work of ended sessions not paid",
    ),
    'price: of one device, as "2.40 EUR/h"; the unit after the stroke is "s", "min", "h" or "day".': (
        "every price taken for one per hour",
        "an unknown unit billed as hours",
        "one device of several",
    ),
    "num_devices: all of them are paid for, all of the time.": ("one device of several",),
    'Returns {"seconds", "hours", "cost", "currency"}: `seconds` and `hours` of the run': (
        "seconds of all devices",
        "hours of sixty seconds",
    ),
    '`cost` of all devices in `currency` ("EUR")': (
        "one device of several",
        "a currency of one's own",
        "the currency with its unit",
    ),
    "None when no validation reaches the target.": ("the whole run where the target is never reached",),
    "Raises ValueError for a price without an amount, a currency or one of these units.": (
        "price without unit",
        "an unknown unit billed as hours",
        "a unit by its beginning",
        "a table's KeyError for an unknown unit",
        "no unit billed as hours",
        "a price refused only where the target is reached",
        "a price of nothing refused",
    ),
}

_GUARD: Claims = {
    "A training loop calls `after_step()` after each update and ends when it says True.": EXPLAINS,
    "The guard reads the clock, knows the price, raises the alarms, and stops in time": (
        "stops when the money is gone",
        "seconds taken for hours",
    ),
    "with a checkpoint, and with the checkpoint paid for.": (
        "no checkpoint before the stop",
        "the save is not in the reserve",
    ),
    "Stops a run, saved, before its budget is spent.": (
        "stops when the money is gone",
        "no checkpoint before the stop",
    ),
    "Time is paid for from here on, whatever it goes into: steps, saves, alarms.": (
        "what an alarm takes not paid",
        "time before the first step not paid",
        "a clock that reads 0 taken for none",
    ),
    "budget: money for the run, all sessions together.": (
        "earlier sessions forgotten",
        "money kept by the class",
        "seconds kept in place of money",
        "money rounded to cents",
    ),
    "Its machine may have another price.": (
        "seconds kept in place of money",
        "the longest step kept as money",
    ),
    "price_per_hour: of all its devices, in the same currency.": ("seconds taken for hours",),
    "save: writes a checkpoint, with this guard's `state_dict` in it;": (
        "saved before the alarms of this step",
        "saved before this step is paid",
    ),
    "takes at most `save_seconds`, which are paid for as well.": ("the save is not in the reserve",),
    "What it raises reaches the caller.": ("the error of a save swallowed",),
    "clock: seconds; only differences mean something, and each session has a clock of its own.": (
        "clocks that go on from session to session",
        "a clock that reads 0 taken for none",
    ),
    "notify: takes one of `alarms`, shares of the budget in rising order.": (
        "alarms in money",
        "alarms at 0.5 and 0.8, whatever is asked for",
    ),
    "alarms: Sequence[float] = (0.5, 0.8)": ("other alarms where none are given",),
    "Called once for each,": (
        "an alarm at every step",
        "one alarm a step",
        "the highest alarm alone",
        "alarms again after a resume",
        "the caller's list used up",
    ),
    "after the first step with which the money spent is at that share or above.": (
        "alarms above their share alone",
        "no alarm after the last step",
    ),
    "Whether the run must end now; before True is returned, `save` has been called, once.": (
        "no checkpoint before the stop",
        "two checkpoints",
        "a checkpoint at every step",
    ),
    "The run goes on as long as another step and a save still fit into the budget.": (
        "the next step is not in the reserve",
        "two steps in reserve",
        "a fit that is exact refused",
    ),
    "The next step may take as long as the longest step so far, over all sessions.": (
        "the last step for the longest",
        "the slowest step of earlier sessions forgotten",
    ),
    "What the guard of the next session must know, as of the last `after_step`": (
        "earlier sessions forgotten",
        "the slowest step of earlier sessions forgotten",
        "the clock read for the state",
    ),
    "(within `save`, of this one, with its alarms)": (
        "saved before the alarms of this step",
        "saved before this step is paid",
    ),
    "plain values that JSON can hold, and that no later step changes.": (
        "a state that JSON cannot hold",
        "a state that goes on with its guard",
        "a guard that goes on in the state it was handed",
    ),
    "Go on from the session before.": ("alarms again after a resume",),
    "state: dict[str, Any]": ("earlier sessions forgotten",),
    "Called right after the guard is made.": EXPLAINS,
}

_WARD: Claims = {
    "Four runs are right and slow.": EXPLAINS,
    "Each has one illness.": EXPLAINS,
    "The next cell prints their source, `SickRuns`.": EXPLAINS,
    "Read it:": EXPLAINS,
    "The four runs, cured.": (
        "histograms still read at every step",
        "the frozen body runs in every epoch",
        "the body runs beside its kept features",
        "fetched ahead by one thread",
    ),
    "Arguments, results and errors are those of `SickRuns`.": (
        "the error of a fetch swallowed",
        "gradients from before run C",
        "gradients from before run D",
        "a list of nothing",
        "run A in evaluation mode",
        "the mode of run B as it was",
        "the mode of run C as it was",
    ),
    'The illness of run "A", "B", "C" or "D".': ("utilisation taken for efficiency",),
    "def diagnose(self, run: str) -> str:": ("utilisation taken for efficiency",),
    'One of "input-bound" (waits for samples), "sync-bound" (reads values all the time), "tiny batch"': (
        "an illness misspelt",
    ),
    '"recomputing" (the same numbers again).': ("utilisation taken for efficiency",),
    "self, model: Any, samples: Any, optimizer: Any, micro_batch_size: int": (
        "batches of eight, whatever is asked for",
    ),
    "One pass over `samples` in their order.": ("samples in order of length", "the last samples left out"),
    "Returns the loss of each step.": ("a list of nothing",),
    "self, model: Any, batches: Sequence[Batch], optimizer: Any, log_every_steps: int": (
        "an entry for the last step too",
    ),
    "One pass.": EXPLAINS,
    'An entry for every step whose number `log_every_steps` divides: "step" (from 1), "loss"': (
        "steps counted from 0",
        "an entry for the last step too",
        "losses without their step",
        "the loss of the first step in every entry",
    ),
    '"histograms" {parameter\'s name: 32 counts of its absolute values in [0, 1]}.': (
        "histograms of signed values",
        "histograms from 0 to the largest",
        "histograms read before the update",
        "histograms read after the epoch",
    ),
    "One pass in order, an update for every `rows_per_update` samples, clipped at 1.0, from the mean": (
        "a bigger batch in place of a fuller forward pass",
        "run C not clipped",
        "one group of the optimizer clipped",
        "the sum of the rows' losses",
        "a last mean over rows that are not there",
    ),
    "Returns that mean for each update.": ("the sum of the rows' losses",),
    "`num_epochs` passes over `batches`; only `model.head` learns, in evaluation mode.": (
        "one epoch for all",
        "run D in training mode",
        "the features of the first batch for all",
        "features kept from the call before",
        "the gradients of run D add up",
    ),
}

_LORA: Claims = {
    "The model is a `TextClassifier`: linear layers in its blocks, and a `head` that is new for the task.": (
        "head frozen",
    ),
    "The check trains through your adapters on another task than the model was pretrained for": EXPLAINS,
    "A frozen linear layer and the adapter beside it.": ("LoRA base not frozen",),
    "Arrange it otherwise if you like.": EXPLAINS,
    "Freeze `model` and put adapters of `rank` beside its linear layers": (
        "LoRA base not frozen",
        "embeddings and norms not frozen",
        "a rank of its own",
        "the base written while it learns",
    ),
    "returns the model.": ("nothing returned", "a copy adapted"),
    "Every `nn.Linear` of the model but `model.head` is replaced": (
        "the layers on the way out left alone",
        "every layer with head in its name left out",
        "every layer whose own name is head left out",
        "every name that begins like the head left out",
        "the head adapted too",
    ),
    "`base(x) + alpha / rank * B A x`": (
        "not divided by the rank",
        "alpha left out",
        "a whole number for the scale",
        "one scale for all models",
        "dropout before the adapter",
    ),
    "of the base's dtype and on its device": (
        "adapters in float32 whatever the base is",
        "adapters in float32, their product cast back",
    ),
    "the module itself is of no use any more.": EXPLAINS,
    "with A and B trainable, [rank, in] and [out, rank] (or transposed)": (
        "a rank of its own",
        "both matrices zero",
        "an adapter with a bias",
        "one A for layers of one size",
        "the path of the adapter cut",
    ),
    "and starts as the base: the logits are what they were.": ("adapters not zero-initialised",),
    "That module has a method `merged()`": ("merged under another name",),
    "which returns a plain `nn.Linear` with the adapter added into its weight": (
        "merged without the scale",
        "merged is another kind of layer",
    ),
    "What asks for a gradient afterwards: the adapters and `model.head`, nothing else.": (
        "biases left to learn",
        "norms left to learn",
        "half of the head",
        "the head as it was",
    ),
    "[..., in] -> [..., out].": ("batches of texts alone",),
    "One plain layer that computes the same.": (
        "merged without the bias",
        "merged with a bias that the base does not have",
        "merged in the default dtype",
        "merged without the scale",
    ),
}

_TARGET: Claims = {
    "A real training on the docstrings of this machine ends at 65 % accuracy.": (
        "a learning rate that diverges",
        "a learning rate that crawls",
    ),
    "The weights, the steps and the accuracies are real.": EXPLAINS,
    "The seconds are worked out from what was computed, by the tariff of a made-up machine": EXPLAINS,
    "`run_to_target` in `autograder/lessons/lesson_07/harness/target.py`.": EXPLAINS,
    "These are its settings:": ("a setting that there is not",),
    '| `machine` | `"small"`, `"large"` |': ("a machine that there is not",),
    "the large one computes 2.5 times as fast and costs 4 times as much": ("time taken for cost",),
    '| `padding` | `"maximum"`, `"longest"`, `"buckets"` |': ("a padding that there is not",),
    "| `learning_rate` | above 0 |": ("a learning rate of 0",),
    "| `micro_batch_size` | 1 to 256 | rows of a step |": ("more rows than a step may have", "half a row"),
    "| `evaluate_every_steps`, `save_every_steps` | 1 and more |": ("an evaluation at no step",),
    "The target counts when an evaluation sees it |": ("no evaluation",),
    "Two settings may differ from the baseline, no more.": ("everything changed at once",),
    "Experiment here:": EXPLAINS,
    "The settings of a run that reaches the same target at least 1.5 times as cheaply.": (
        "nothing changed",
        "a small part of the bill",
        "optimising epoch time",
        "time taken for cost",
    ),
    "settings: those of the baseline.": ("the changes alone",),
    "Returns settings with the same keys, of which at most two have another value.": (
        "the changes alone",
        "a setting that there is not",
        "everything changed at once",
        "settings changed in place, and none returned",
    ),
}

CLAIMS: dict[str, Claims] = {
    "7.1": _TRACE,
    "7.2": _COST,
    "7.3": _GUARD,
    "7.4": _WARD,
    "7.5": _LORA,
    "7.6": _TARGET,
}
