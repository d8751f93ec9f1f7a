"""Two nodes, each a network namespace: one is lost without a word, the other goes on; it comes back and joins."""

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from course_lib.runs.folder import RunFolder
from tests.course_lib.scripts.small import torchrun, torchrun_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PATIENCE = 240.0
SETTINGS = ("d_model=32", "num_layers=2", "vocab_size=300", "max_length=64", "micro_batch_size=16",
            "global_batch_size=32", "validation=0.2", "dropout=0", "precision=32-true", "max_steps=1200",
            "validate_every_steps=200", "log_every_steps=20", "checkpoint_every_steps=40")  # fmt: skip


COMMON = ["the", "a", "of", "and", "we", "to", "it", "was"]


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def nodes():
    """Two namespaces joined by a cable; gives, by node, its name, its end of the cable and its address."""
    if os.name != "posix" or not shutil.which("ip") or os.geteuid() != 0:
        pytest.skip("two nodes need network namespaces: root, and `ip` of iproute2")
    nodes = [(f"node{n}-{os.getpid()}", f"cable{n}-{os.getpid() % 10_000}", f"10.77.0.{n}") for n in (1, 2)]
    try:
        for name, _, _ in nodes:
            ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespace can be made here: {error.stderr.decode().strip()}")
    try:
        (first, cable, _), (second, other_cable, _) = nodes
        ip("link", "add", cable, "netns", first, "type", "veth", "peer", other_cable, "netns", second)
        for name, end, address in nodes:
            ip("-n", name, "address", "add", f"{address}/24", "dev", end)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", end, "up")
        yield nodes
    finally:
        for name, _, _ in nodes:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.fixture
def csv_file(tmp_path):
    rng = random.Random(0)
    rows = ["text,label"]
    for number in range(240):  # 192 to train on: six whole windows of 32
        label, words = rng.choice([("cooking", "onion garlic oven"), ("sport", "team goal match")])
        text = [f"text {number}", *rng.choices(COMMON, k=rng.randint(2, 25))]
        rows.append(f"{' '.join([*text, *rng.choices(words.split(), k=4)])},{label}")
    path = tmp_path / "texts.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def train_arguments(csv_file, out):
    settings = [option for setting in SETTINGS for option in ("--set", setting)]
    return ["-m", "course_lib", "train", "--data", csv_file, "--out", out, *settings]


def wait_for(condition, what, jobs=()):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        for job in jobs:
            assert job.poll() is None, f"a node ended before {what}: {Path(job.log).read_text()[-3000:]}"
        time.sleep(0.05)


@pytest.mark.exhaustive
def test_a_node_is_lost_and_comes_back_and_the_run_is_that_of_one_process(nodes, csv_file, tmp_path):
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "COURSE_LIB_CACHE": str(tmp_path / "cache"),
        "COURSE_LIB_TIMEOUT_SECONDS": "8",
        # torch 2.13 tells the address of a shared store in the first round only; a node that comes later waits.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    alone = RunFolder(tmp_path / "alone")
    torchrun(*train_arguments(csv_file, alone.directory), processes=1, env=environment, timeout=PATIENCE)
    out = RunFolder(tmp_path / "two")
    host = nodes[0][2]

    def start(number):
        name, cable, address = nodes[number]
        meeting = f"is_host={int(number == 0)},last_call_timeout=2,join_timeout=120"
        command = torchrun_command(
            *train_arguments(csv_file, out.directory),
            processes=1,
            options=[
                *("--nnodes", "1:2", "--max-restarts", "9", "--monitor-interval", "0.2"),
                *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{host}:29500", "--rdzv-id", "job"),
                *("--rdzv-conf", meeting, "--local-addr", address),
            ],
        )
        log = tmp_path / f"{name}-{time.monotonic_ns()}.log"
        job = subprocess.Popen(
            ["ip", "netns", "exec", name, *command],
            env={**environment, "GLOO_SOCKET_IFNAME": cable},
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        job.log = log
        return job

    def world_size():
        return out.read_record().get("world_size")

    first, second = start(0), start(1)
    try:
        wait_for(lambda: out.last.exists() and world_size() == 2, "two nodes that train", [first, second])
        # The cable is cut before the processes end: nothing tells the first node.
        ip("-n", nodes[1][0], "link", "set", nodes[1][1], "down")
        for pid in subprocess.run(
            ["ip", "netns", "pids", nodes[1][0]], check=True, capture_output=True, text=True
        ).stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        second.wait()
        wait_for(lambda: world_size() == 1, "the first node to go on alone", [first])
        ip("-n", nodes[1][0], "link", "set", nodes[1][1], "up")
        second = start(1)
        wait_for(lambda: world_size() == 2, "the second node to be back", [first, second])
        assert first.wait(PATIENCE) == 0, first.log.read_text()[-3000:]
        assert second.wait(PATIENCE) == 0, second.log.read_text()[-3000:]
    finally:
        for job in (first, second):
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
    record, expected = out.read_record(), alone.read_record()
    assert record["status"] == "finished" and record["world_size"] == 2
    assert record["data"]["num_train"] % 32 == 0
    assert record["weights_sha256"] == expected["weights_sha256"]
    curves = [
        [(line["step"], line["num_samples"]) for line in folder.read_metrics() if line["kind"] == "train"]
        for folder in (out, alone)
    ]
    assert curves[0] == curves[1]  # every step once, on as many samples
