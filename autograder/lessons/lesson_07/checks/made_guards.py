"""A run of exercise 7.3, and where a right or a mistaken guard ends it: session by session, with its alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DEFAULT_ALARMS = (0.5, 0.8)
Entry = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run. Money and time that have to be exactly equal are whole numbers, so that no rounding decides."""

    settings: dict[str, Any]
    """What the guard is made with, callables aside; without `alarms` it has its own."""
    sessions: list[list[float]]
    """Seconds of each step; the last session has more of them than the budget pays for."""
    save_takes: float
    clocks: list[float]
    """What each session's clock says when its guard is made."""
    prices: list[float] | None = None
    """Of an hour in each session, where they differ: the run goes on on other machines."""
    notify_takes: float = 0.0
    """Seconds until an alarm has been heard."""
    late: float = 0.0
    """Seconds after a session's last step at which its state is asked for: a step was on its way."""
    loading_takes: float = 0.0
    """Seconds from when a guard is made until it has the state of the session before."""
    saves: list[float] | None = None
    """`save_seconds` in each session, where they differ."""
    sequel: tuple[float, float] | None = None
    """Clock, and seconds of the one step, of a session that begins from the state in the checkpoint at the stop."""


def simulate(run: Run, mistake: str = "") -> list[Entry]:
    """What a right guard does, or one with this mistake, session by session up to the one in which it stops.

    `spent` is what has been paid after the last step, before the save.
    """
    guard, log = _Guard(run, mistake), []
    prices = run.prices or [run.settings["price_per_hour"]] * len(run.sessions)
    for number, (durations, starts, price) in enumerate(zip(run.sessions, run.clocks, prices, strict=True)):
        if run.saves and not (number and mistake == "one save"):
            guard.save_seconds = run.saves[number]
        log.append(entry := guard.session(durations, starts, price))
        if entry["is_stopped"]:
            if run.sequel and entry["saves"]:
                later = guard.session([run.sequel[1]], run.sequel[0], price)
                entry["sequel"] = {name: later[name] for name in ("steps", "is_stopped", "alarms")}
            break
    return log


class _Guard:
    """A guard, right or with a mistake, over all sessions of a run."""

    def __init__(self, run: Run, mistake: str) -> None:
        self.run, self.mistake = run, mistake
        self.budget, self.save_seconds = run.settings["budget"], run.settings["save_seconds"]
        self.shares = list(run.settings.get("alarms", DEFAULT_ALARMS))
        self.pending = list(self.shares)
        self.spent = self.longest = self.dearest = self.paid_seconds = 0.0
        self.clock = run.clocks[0]  # what it said when it was read last
        self.num_sessions = 0

    def session(self, durations: list[float], starts: float, price: float) -> Entry:
        mistake, rate = self.mistake, price / (1.0 if self.mistake == "hours" else 3600.0)
        self._begin(rate)
        jump = starts - self.clock if mistake == "one clock" else 0.0
        if durations or mistake != "one clock":
            self.clock = starts
        self.num_sessions += 1
        if durations and self.num_sessions > 1 and mistake != "clock at loading":
            durations = [durations[0] + self.run.loading_takes, *durations[1:]]
        if not durations and mistake == "nothing before a step":
            self.spent, self.longest, self.pending = 0.0, 0.0, list(self.shares)
        waited = 0.0  # since the clock was read
        entry: Entry = {"steps": 0, "is_stopped": False, "saves": 0, "alarms": [], "spent": 0.0}
        for duration in durations:
            entry["steps"] += 1
            if mistake == "no time" and not duration + waited + jump:
                continue
            spent, pending, num_alarms = self.spent, list(self.pending), len(entry["alarms"])
            longest = self.longest
            self._pay(entry, duration, waited, jump, rate)
            jump, is_over = 0.0, self._is_over(rate)
            entry["spent"] = self.spent
            if not (mistake == "no alarm at the stop" and is_over):
                self._alarm(entry)
            waited = self.run.notify_takes * (len(entry["alarms"]) - num_alarms)
            if mistake == "saves at every step":
                entry["saves"] += 1
                waited += self.run.save_takes
            if is_over:
                entry["is_stopped"] = True
                saves = {"no checkpoint": 0, "two checkpoints": 2}
                if mistake == "nothing left to save" and self.spent >= self.budget:
                    saves[mistake] = 0
                entry["saves"] = saves.get(mistake, max(1, entry["saves"]))
                self.pending = pending if mistake == "saved before the alarms" else self.pending
                self.spent = spent if mistake == "saved before it is paid" else self.spent
                self.longest = longest if mistake == "saved before it is measured" else self.longest
                break
        if mistake == "clock in the state":
            self.spent += (waited + (0.0 if entry["is_stopped"] else self.run.late)) * rate
        self.spent = round(self.spent, 2) if mistake == "rounded" else self.spent
        return entry

    def _begin(self, rate: float) -> None:
        if self.mistake == "one price":
            self.spent = self.paid_seconds * rate
        if self.mistake == "session forgotten":
            self.spent = 0.0
        if self.mistake == "alarms again":
            self.pending = list(self.shares)
        if self.mistake == "slowest forgotten":
            self.longest = 0.0

    def _pay(self, entry: Entry, duration: float, waited: float, jump: float, rate: float) -> None:
        is_unpaid = self.mistake == "first step" and entry["steps"] == 1
        is_unpaid |= self.mistake == "clock at zero" and self.clock == 0.0
        seconds = duration + (0.0 if self.mistake == "notify not paid" else waited) + jump
        seconds = 0.0 if is_unpaid else seconds
        self.clock += duration + waited
        self.spent, self.paid_seconds = self.spent + seconds * rate, self.paid_seconds + seconds
        self.longest = max(0.0 if self.mistake == "last step" else self.longest, seconds)
        self.dearest = max(self.dearest, seconds * rate)

    def _is_over(self, rate: float) -> bool:
        mistake = self.mistake
        if mistake == "no reserve":
            return bool(self.spent >= self.budget)
        step = {"no step": 0.0, "two steps": 2.0 * self.longest}.get(mistake, self.longest)
        save = {"no save": 0.0, "two saves": 2.0 * self.save_seconds}.get(mistake, self.save_seconds)
        reserve = (step + save) * rate
        if mistake == "dearest step":
            reserve = self.dearest + save * rate
        spent = self.spent + reserve
        return bool(spent >= self.budget if mistake == "fits" else spent > self.budget)

    def _alarm(self, entry: Entry) -> None:
        mistake, spent, budget = self.mistake, self.spent, self.budget
        if mistake == "no more than the budget":
            spent = min(spent, budget)
        due = [
            share
            for share in self.pending
            if (spent > share * budget if mistake == "above the share" else spent >= share * budget)
            and not (mistake == "shares to 1" and share > 1.0)
            and not (mistake == "shares below 1" and share >= 1.0)
        ]
        if mistake == "one alarm a step":
            due = due[:1]
        if mistake == "the highest alarm":
            self.pending = [share for share in self.pending if share not in due]
            due = due[-1:]
        said = [share * budget for share in due] if mistake == "sums of money" else due
        entry["alarms"] += [[entry["steps"], share] for share in said]
        if mistake != "alarm at every step":
            self.pending = [share for share in self.pending if share not in due]
