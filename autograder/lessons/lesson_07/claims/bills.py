"""What exercises 7.1 to 7.3 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

TRACE: Claims = {
    "Read a trace.": EXPLAINS,
    "Its events are dicts, in no particular order.": (
        "steps in the order of the list",
        "a reading kept by the address of its list",
    ),
    "Of all kinds of events you need three:": (
        "memory copies counted as kernels",
        "whatever else has the launch's correlation",
    ),
    '`"user_annotation"` | a range on the host: a step, `ProfilerStep#12`, or a stage, `stage: forward`': (
        "the GPU's copies counted too",
    ),
    '`"cuda_runtime"` | the host queues a kernel': ("the length of the launches",),
    "or several with one call (a graph)": (
        "one kernel of a launch",
        "the first kernel of a launch",
        "kernels of one length taken for the same",
    ),
    '`"kernel"` | the GPU runs it, perhaps much later': (
        "timing CUDA without a sync: by the moment when a kernel runs",
    ),
    "`ts` (start) and `dur` (length) are in **microseconds**.": ("a time without its unit",),
    "its launch, with the same correlation, lies inside that range": (
        "launches found by their name",
        "kernels between two steps for the one before",
        "a launch at the beginning of its stage",
    ),
    "whichever thread made it.": ("launches of one thread",),
    "A kernel belongs to the step and the stage in which it was *queued*": (
        "timing CUDA without a sync: the host's ranges",
        "timing CUDA without a sync: by the moment when a kernel runs",
    ),
    "When it runs, the host may be two stages further.": EXPLAINS,
    "Mean seconds a step, by stage, on the host and on the device.": ("sums in place of means",),
    'events: the "traceEvents" of a trace, in any order.': (
        "steps in the order of the list",
        "steps sorted by name",
        "steps in the order of their numbers",
        "steps kept by their name",
    ),
    'Ranges of `cat` "user_annotation" named': (
        "whatever is no copy of a GPU",
        "the GPU's copies counted too",
    ),
    '"ProfilerStep#<number>" are steps': (
        "every range with a number taken for a step",
        "every name that begins like a step's",
    ),
    'those named "stage: <name>" are stages': (
        "every range with these words in its name",
        "every name that begins like a stage's",
        "every other range taken for a stage",
    ),
    "inside one step, and a step may have several of one name.": (
        "one range of a name in a step",
        "the last range of a name",
        "a stage that begins where a step ends, in both",
        "a stage that ends with its step",
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
        "a graph from its first kernel to its last",
        "timing CUDA without a sync: the host's ranges",
    ),
    '"other": of those queued in the step, but in no stage.': (
        "kernels of no stage left out",
        "kernels between two stages for the one before",
    ),
    "0.0 without a GPU": ("device times of a GPU alone",),
    "All five stages are there, also those that never occur.": ("stages that never occur left out",),
    "Where no step counts, all times are 0.0.": ("divided by no steps", "a trace of no events"),
    "The events stay as they are.": ("events sorted in place",),
}

COST: Claims = {
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
        "nearly the target",
        "a share of the target",
        "a bill of 0 taken for none",
        "0.0 taken for no value",
    ),
    "higher_is_better: bool": ("the direction ignored", "the direction by the metric's name"),
    "records, in order; `kind` says which keys there are:": (
        "only the last session",
        "a bill kept by the address of its log",
    ),
    '"start" "seconds": loading and compiling, before the first step of a session. Paid': (
        "compile time hidden",
        "a start-up is free before the first step",
        "start-ups of later sessions too",
    ),
    '"train" "session_seconds": since the first step of this session': ("values of training",),
    '"validation" "session_seconds", and the metric under the name `monitor` (or None, or NaN)': (
        "another metric",
        "the first metric of a validation",
        "whole numbers taken for none",
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
        "one result for all calls",
    ),
    '`cost` of all devices in `currency` ("EUR")': (
        "money rounded",
        "one device of several",
        "a currency of one's own",
        "the currency with its unit",
    ),
    "None when no validation reaches the target.": ("the whole run where the target is never reached",),
    "Raises ValueError for a price without an amount (NaN is none), a currency or one of these units.": (
        "NaN for an amount",
        "price without unit",
        "an unknown unit billed as hours",
        "a unit by its beginning",
        "units by their other names",
        "one more name of a unit",
        "no price billed as nothing",
        "a price without a point refused",
        "a price found somewhere in a text",
        "a table's KeyError for an unknown unit",
        "no unit billed as hours",
        "a price refused only where the target is reached",
        "a price of nothing refused",
    ),
}

GUARD: Claims = {
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
        "the clock read anew when the state is loaded",
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
    "takes at most `save_seconds`, which are paid for as well.": (
        "the save of the session before",
        "the save is not in the reserve",
    ),
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
        "no alarm above the whole budget",
        "alarms at shares that are rounded",
        "alarms above their share alone",
        "no alarm after the last step",
    ),
    "Whether the run must end now; before True is returned, `save` has been called, once.": (
        "nothing said where the run goes on",
        "a step that the clock does not see",
        "no checkpoint before the stop",
        "no checkpoint where all is spent",
        "two checkpoints",
        "a checkpoint at every step",
    ),
    "The run goes on as long as another step and a save still fit into the budget, as it stands when this": (
        "the next step is not in the reserve",
        "two steps in reserve",
        "a fit that is exact refused",
    ),
    "What an alarm takes is paid, as a part of the next step or beside it.": (
        "what an alarm takes not paid",
    ),
    "The next step may take as long as the longest step so far, over all sessions": (
        "the last step for the longest",
        "the slowest step of earlier sessions forgotten",
    ),
    "What the guard of the next session must know: the money spent, the longest step and the alarms": (
        "seconds kept in place of money",
        "alarms again after a resume",
    ),
    "as of the last `after_step`": (
        "no state before the first step of all",
        "nothing known before the first step",
        "earlier sessions forgotten",
        "the slowest step of earlier sessions forgotten",
        "the clock read for the state",
    ),
    "(within `save`, of this one, with its alarms)": (
        "saved before the alarms of this step",
        "saved before this step is paid",
    ),
    "Plain values that JSON can hold, and that no later step changes.": (
        "a state that JSON cannot hold",
        "a state that goes on with its guard",
        "a guard that goes on in the state it was handed",
    ),
    "Go on from the session before.": ("alarms again after a resume",),
    "state: dict[str, Any]": ("earlier sessions forgotten",),
    "Called right after the guard is made.": EXPLAINS,
}
