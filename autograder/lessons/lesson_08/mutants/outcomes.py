"""Wrong solutions of 8.3 whose record tells the outcome wrongly: the metrics, the files, the failure, the times."""

from __future__ import annotations

from autograder.lessons.checking.mutants import Mistake

_WRITE = '        (out / "run.json").write_text(json.dumps(record, indent=2))\n'
_FILES = 'files = [p for p in sorted(out.rglob("*")) if p.is_file()]'

OUTCOME: dict[str, Mistake] = {
    "failures are not recorded": (
        "failures are not recorded",
        (_WRITE, ""),
        ("    return record", '    (out / "run.json").write_text(json.dumps(record))\n    return record'),
    ),
    "some failures are not recorded": (
        "failures are not recorded as such",
        "except BaseException as error",
        "except (ArithmeticError, LookupError, ValueError, OSError, RuntimeError) as error",
    ),
    "errors that have a name alone": (
        "failures are not recorded as such",
        "except BaseException as error",
        "except (Exception, KeyboardInterrupt, SystemExit) as error",
    ),
    "a run stopped by hand has finished": (
        "a run that is stopped by hand",
        "except BaseException as error",
        "except Exception as error",
    ),
    "a failure without words is none": (
        "a run that is stopped by hand",
        '"status": "failed", "failure"',
        '"status": "failed" if str(error) else "finished", "failure"',
    ),
    "the record is never written": ("never written", _WRITE, ""),
    "written as Python shows it": (
        "written with `str` or `repr`",
        "json.dumps(record, indent=2)",
        "str(record)",
    ),
    "something is added after writing": (
        "something is added after writing",
        "    return record",
        '    record["metrics"]["num_samples"] = len(labels)\n    return record',
    ),
    "no plain values": (
        "no plain JSON value",
        ('"hardware": {', '"hardware": {"data": data_path, '),
        ("json.dumps(record, indent=2)", "json.dumps(record, indent=2, default=str)"),
    ),
    "nothing is returned": ("something is added after writing", "    return record", "    return None"),
    "the error is swallowed": ("swallowed", "        raise\n", ""),
    "another error in its place": (
        "another error is raised in its place",
        "        raise\n",
        '        raise RuntimeError(f"training failed: {error}") from error\n',
    ),
    "a new error of the same kind": (
        "another error is raised in its place",
        "        raise\n",
        "        raise type(error)(*error.args) from None\n",
    ),
    "the beginning of the message": (
        "only a part of the message",
        'f"{type(error).__name__}: {error}"',
        'f"{type(error).__name__}: {str(error)[:500]}"',
    ),
    "a second try after a failure": (
        "tried again after a failure",
        "        labels, predictions, slices = train(config, out)\n",
        "        try:\n            labels, predictions, slices = train(config, out)\n"
        "        except Exception:\n            labels, predictions, slices = train(config, out)\n",
    ),
    "training writes elsewhere": (
        "something else is passed on",
        "train(config, out)",
        "train(config, out.parent)",
    ),
    "finished whatever happens": (
        "failures are not recorded as such",
        '"status": "failed", "failure"',
        '"failure"',
    ),
    "the error's type alone": (
        "failures are not recorded as such",
        'f"{type(error).__name__}: {error}"',
        "type(error).__name__",
    ),
    "the message escaped": (
        "the message is escaped",
        'f"{type(error).__name__}: {error}"',
        "repr(error)",
    ),
    "an empty text for no failure": (
        "a run that ended well has no failure",
        '"failure": None',
        '"failure": ""',
    ),
    "empty metrics after a failure": ("None says so", '"metrics": None', '"metrics": {}'),
    "metrics without slices": ("metrics without slices", '"slices": by_slice', '"slices": {}'),
    "slices whose names are cleaned": (
        "metrics without slices",
        "np.asarray(slices)\n",
        "np.asarray([name.strip() for name in slices])\n",
    ),
    "a slice without a name": (
        "metrics without slices",
        "for name in np.unique(slices)",
        "for name in np.unique(slices) if name",
    ),
    "slices without their size": (
        "a slice without its size",
        ', "num_samples": int((slices == name).sum())',
        "",
    ),
    "a mean of the slices": (
        "a mean over slices",
        "accuracy = float(right.mean())",
        "accuracy = float(np.mean([s['accuracy'] for s in by_slice.values()]))",
    ),
    "labels and predictions are not compared": (
        "another slice's samples",
        "np.asarray(labels) == np.asarray(predictions)",
        "np.asarray(labels) == np.asarray(labels)",
    ),
    "files in folders inside are left out": (
        "not those in folders inside",
        'out.rglob("*")',
        'out.glob("*")',
    ),
    "files without an ending are left out": ("left out by their name", 'out.rglob("*")', 'out.rglob("*.*")'),
    "hidden files are left out": (
        "left out by their name",
        "if p.is_file()]",
        'if p.is_file() and p.name[0] != "."]',
    ),
    "hidden folders are left out": (
        "left out by their name",
        "if p.is_file()]",
        'if p.is_file() and "/." not in p.as_posix()[len(out.as_posix()) :].rpartition("/")[0]]',
    ),
    "what begins like the record is left out": (
        "left out by their name",
        "if p.is_file()]",
        'if p.is_file() and not p.name.startswith("run.json.")]',
    ),
    "names of files in ASCII": (
        "named otherwise",
        "p.relative_to(out).as_posix()",
        'p.relative_to(out).as_posix().encode("ascii", "replace").decode()',
    ),
    "every run.json is left out": (
        "taken for the record itself",
        "if p.is_file()]",
        'if p.is_file() and p.name != "run.json"]',
    ),
    "files by their name alone": ("named otherwise", "p.relative_to(out).as_posix()", "p.name"),
    "the record counts itself": (
        "run.json counts itself",
        "        files = ",
        '        (out / "run.json").write_text("{}")\n        files = ',
    ),
    "no files after a failure": (
        "not listed after a failure",
        _FILES,
        _FILES + ' if record["status"] == "finished" else []',
    ),
    "the hash of a name": (
        "not that of the file's bytes",
        "sha256(p) for p",
        "hashlib.sha256(p.name.encode()).hexdigest() for p",
    ),
    "one record for all runs": (
        "the records of all runs are one dict",
        ("    record = {\n", "    record = RECORD\n    record |= {\n"),
        ("def sha256", "RECORD = {}\n\ndef sha256"),
    ),
    "the number of the process": (
        "random names",
        '"num_cores": os',
        '"process": os.getpid(), "num_cores": os',
    ),
    "a failure with its time": (
        "times, random names or absolute paths",
        'f"{type(error).__name__}: {error}"',
        'f"{time.time()}: {error}"',
    ),
    "equal runs differ": (
        "absolute paths stand among",
        '"num_cores": os',
        '"out": str(out), "num_cores": os',
    ),
    "times among the rest": (
        "times, random names or absolute paths",
        '"status": "finished"',
        '"started": time.time(), "status": "finished"',
    ),
    "a time without its name": (
        "a number without its name",
        '{"seconds": time.perf_counter() - start}',
        "time.perf_counter() - start",
    ),
}
