"""The check of exercise 7.3: a guard of the budget, in runs whose clock the check turns."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from autograder.engine import Job, Worker
from autograder.lessons.checking import name_the_mistake
from autograder.lessons.lesson_07.checks.made_guards import Entry, Run, simulate
from autograder.lessons.lesson_07.checks.made_runs import runs

SMALL = "the reserve is too small: the longest step so far counts, over all sessions"
LEFT_OUT = "is left out: a long step may spend more than the budget, and then it is due"
LIKELY = {
    "no reserve": "it stops when the money is gone: the step and the save that follow are not paid for",
    "hours": "seconds taken for hours: the price is for an hour, the clock counts seconds",
    "session forgotten": "earlier sessions are forgotten: `state_dict` must hold the money that they spent",
    "one price": "seconds are kept and not money: each session has its own price, and pays at it",
    "clock in the state": "the clock is read again for the state: it holds the money as of the last `after_step`",
    "notify not paid": "what `notify` takes is not paid for: the clock is read anew after it",
    "saved before the alarms": "saved before the alarms of this step are given: the state in the checkpoint does not "
    "know them, and the next session gives them again",
    "saved before it is paid": "saved before this step is paid: the state in the checkpoint does not know its money",
    "saved before it is measured": "saved before this step is measured: the state in the checkpoint does not know that "
    "it was the longest",
    "clock at loading": "the clock is read anew when the state is loaded: time is paid for from `__init__` on",
    "nothing before a step": "a state asked for before the first step knows nothing: what was loaded goes on with it",
    "one save": "`save_seconds` comes from the state: each guard is told its own",
    "dearest step": "the longest step is kept as money: on a machine with another price it costs something else",
    "rounded": "the money is rounded in the state: a little of each session is forgotten, or all of it",
    "slowest forgotten": f"{SMALL}, and the slowest of earlier sessions is forgotten",
    "last step": f"{SMALL}, not the last one",
    "first step": "the first step of a session is not paid for: time counts from `__init__` on",
    "clock at zero": "a clock that reads 0 is taken for one that was never read: the first step is not paid for",
    "one clock": "the clock of the session before is compared with that of this one: each session has its own",
    "no save": "the save is not paid for: the reserve holds a step alone",
    "no step": "the next step is not paid for: the reserve holds the save alone",
    "two steps": "a larger reserve than one step and one save",
    "two saves": "a larger reserve than one step and one save",
    "fits": "what fits exactly fits: another step and a save may take all that is left",
    "no checkpoint": "it stops without a checkpoint: the money is saved and the work is lost",
    "two checkpoints": "it saves more than once at the stop",
    "saves at every step": "it saves at every step, and pays for it",
    "one alarm a step": "one alarm a step: a long step may pass several, and each is given",
    "the highest alarm": "the highest alarm alone: a long step may pass several, and each is given",
    "alarm at every step": "an alarm at every step, where each is given once",
    "alarms again": "an alarm again after a resume: `state_dict` knows which were given, also once it has been "
    "through JSON",
    "above the share": "an alarm above its share alone: it is due at the share itself",
    "no alarm at the stop": "no alarm after the step at which the run ends",
    "nothing left to save": "no checkpoint where more is spent than the budget: before True one is saved, always",
    "no more than the budget": f"an alarm above 1 {LEFT_OUT}",
    "shares to 1": f"an alarm above 1 {LEFT_OUT}",
    "shares below 1": f"an alarm at 1 or above {LEFT_OUT}",
    "no time": "a step in which the clock stands still is passed over: the run must end after it too",
    "sums of money": "`notify` takes one of `alarms`, a share and no sum of money",
}
LOOK_STOP = "what may the next step and the save cost together, at the price of a second, and is that left?"
OF_SESSIONS = ("sessions", "clocks", "prices", "saves")
"""What a run has for each of its sessions."""
LOOK_ALARMS = (
    "each alarm once, when the money spent first reaches its share; `state_dict` knows which were given"
)


def check_budget_guard(job: Job) -> None:
    """7.3: saves once and stops in time, no sooner than it must, over sessions, with each alarm once."""
    drawn = runs(job.rng)
    answers = _answers(job.learner(), drawn)
    for answer in answers:
        job.require(
            not answer["not_plain"],
            expected="a state of plain values, which JSON can hold",
            got=answer["not_plain"],
            likely="a set, an array or an object of its own in `state_dict`",
            look="`json.dumps(guard.state_dict())`",
        )
    said = sorted({one for answer in answers for one in answer["said"]})
    job.require(
        not said,
        expected="True or False from `after_step`",
        got=", ".join(said)[:100],
        likely="another value than True or False: None where the run goes on, or a number",
        look="`return False` where the run goes on",
    )
    logs, wanted = [_asked(answer["log"]) for answer in answers], [simulate(run) for run in drawn]
    if logs != [_asked(log) for log in wanted]:
        # Where none gives all of them: a few may end a step apart, by the last bit of a sum.
        likely = _mistake(drawn, logs, 0) or _mistake(drawn, logs, len(drawn) // 10)
        number = next(i for i, log in enumerate(logs) if log != _asked(wanted[i]))
        if not likely and answers[0]["is_list_changed"]:
            likely = "the list of alarms that the guard was given is changed, and the next guard misses them"
        elif not likely and _is_right_alone(job, drawn[number], wanted[number]):
            likely = "guards share what each must keep for itself: an attribute of the class, or a global"
        _require_same(job, logs[number], wanted[number], likely)
    job.require(
        not any(answer["is_state_changed"] for answer in answers),
        expected="a state that stays as it was handed out, or in",
        got="one that is another after further steps",
        likely="guard and state share a list or a dict: what a checkpoint holds changes with the next steps",
        look="copy what goes into `state_dict`, and what comes from `load_state_dict`: `list(...)`",
    )
    _require_resumed(job, drawn, answers, wanted)
    for failed in job.learner().call("with_saves_that_fail", run=asdict(drawn[0])):
        _require_told(job, failed)
    job.counts["runs"] = len(drawn)


def _require_resumed(
    job: Job, drawn: list[Run], answers: list[dict[str, Any]], wanted: list[list[Entry]]
) -> None:
    """Later sessions in a process that knows nothing of the first, but for its state."""
    again = [number for number, run in enumerate(drawn) if len(wanted[number]) > 1]
    later = [
        {
            name: value[1:] if value and name in OF_SESSIONS else value
            for name, value in asdict(drawn[number]).items()
        }
        | {"state": answers[number]["states"][0]}
        for number in again
    ]
    found = job.worker("resumed", job.source).call("guarded", runs=later)
    for number, answer in zip(again, found, strict=True):
        right = wanted[number][1:]
        if _asked(answer["log"]) != _asked(right):
            likely = (
                "`state_dict` holds less than there is: the rest stays behind in the process that is gone"
            )
            _require_same(job, _asked(answer["log"]), _asked(right), likely)


def _mistake(drawn: list[Run], logs: list[list[Entry]], most_apart: int) -> str:
    """The mistake that gives the logs of all runs but so many."""

    def is_same(wrong: list[list[Entry]]) -> bool:
        return sum(one != other for one, other in zip(wrong, logs, strict=True)) <= most_apart

    return name_the_mistake(
        LIKELY, twin=lambda mistake: [_asked(simulate(run, mistake)) for run in drawn], is_same=is_same
    )


def _require_told(job: Job, failed: dict[str, Any]) -> None:
    job.require(
        failed["reached"] == failed["wanted"],
        expected="the error of a `save` that fails, from `after_step`",
        got=failed["reached"] or "none, and a run that ends",
        likely="the error of `save` is swallowed: the run ends, and nobody knows that there is no checkpoint",
        look="no `except` around `save()`, or one that raises again",
    )
    job.require(
        failed["calls"] == 1,
        expected="one call of a `save` that fails",
        got=f"{failed['calls']}",
        likely="`save` is called again after its error: that takes time which nobody has paid for",
        look="no loop around `save()`",
    )


def _answers(worker: Worker, drawn: list[Run]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = worker.call("guarded", runs=[asdict(run) for run in drawn])
    return answers


def _is_right_alone(job: Job, run: Run, wanted: list[Entry]) -> bool:
    """Whether the run goes well in a process that has seen no other guard."""
    answers = _answers(job.worker("alone", job.source), [run])
    return _asked(answers[0]["log"]) == _asked(wanted)


def _asked(log: list[Entry]) -> list[Entry]:
    asked = ("steps", "is_stopped", "saves", "alarms")
    return [{key: entry[key] for key in asked} | {"sequel": entry.get("sequel")} for entry in log]


def _require_same(job: Job, log: list[Entry], wanted: list[Entry], likely: str) -> None:
    last, right = log[-1], wanted[-1]
    many = f" (session {len(log)} of {len(wanted)})" if len(wanted) > 1 else ""
    job.require(
        last["is_stopped"] and (len(log), last["steps"]) <= (len(wanted), right["steps"]),
        expected=f"a run that stops after step {right['steps']}{f' of session {len(wanted)}' if many else ''}: "
        "the next step and the save might cost more than is left",
        got=f"after step {last['steps']}{many}" if last["is_stopped"] else f"a run that goes on{many}",
        likely=likely or "the reserve is too small: what the longest step so far and the save cost",
        look=LOOK_STOP,
    )
    job.require(
        (len(log), last["steps"]) == (len(wanted), right["steps"]),
        expected=f"a stop after step {right['steps']} of the last session: until then another step and a save fit",
        got=f"after step {last['steps']}{many}",
        likely=likely
        or "it stops too early: a larger reserve than one step and one save, or time paid for twice",
        look=LOOK_STOP,
    )
    saves = sum(entry["saves"] for entry in log)
    job.require(
        saves == 1,
        expected="one checkpoint, at the stop",
        got=f"{saves}",
        likely=likely or "`save` is called once, before True is returned, and at no other time",
        look="`save()` right before you return True",
    )
    got, alarms = ([entry["alarms"] for entry in entries] for entries in (log, wanted))
    job.require(
        got == alarms,
        expected=f"alarms [step, share] {alarms}, session by session"[:300],
        got=f"{got}"[:200],
        likely=likely or "an alarm missing, at the wrong share, or in another order",
        look=LOOK_ALARMS,
    )
    job.require(
        last.get("sequel") == right.get("sequel"),
        expected=f"of a guard that goes on from the state in the checkpoint at the stop: {right.get('sequel')}"[
            :300
        ],
        got=f"{last.get('sequel')}"[:200],
        likely=likely or "the state in the checkpoint is not that of the step after which it was saved",
        look="within `save`, what does `state_dict` say of the money and of the alarms?",
    )
    job.require(
        False,
        expected=f"what a guard does in {len(wanted)} sessions",
        got="something else",
        likely=likely or "a save or a stop in a session that goes on",
        look=LOOK_STOP,
    )
