"""Two processes fight for locks while they and the gateway are killed: never two holders of one path."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import lock_fighter
import pytest
from gateway import GatewayProcess
from lock_fighter import PATHS, TTL_S
from wire import call

DELAY_S = 0.5
SLACK_S = (
    20.0  # for a machine that does much else; the claim is that a lease ends, not that it does so on time
)


class Arena:
    """The gateway, two fighters, and the witness file."""

    def __init__(self, folder: Path, seed: int) -> None:
        config = folder / "herdr.yaml"
        config.write_text(f"locks: {{expiry_delay_s: {DELAY_S}}}\n")
        self.witness = folder / "witness"
        self.gateway = GatewayProcess(folder / "data", ("--config", str(config))).start()
        # It comes back where the fighters look for it
        self.gateway.args = (*self.gateway.args, "--port", str(self.gateway.port))
        self.rng = random.Random(seed)
        self.numbers = count()
        self.fighters = [self.new_fighter() for _ in range(2)]
        self.killed: list[str] = []

    def new_fighter(self) -> tuple[str, "subprocess.Popen[bytes]"]:
        name = f"fighter-{next(self.numbers)}"
        program = [sys.executable, lock_fighter.__file__, self.gateway.url, name]
        return name, subprocess.Popen([*program, str(self.rng.randrange(10**9)), str(self.witness)])

    def note_death(self, name: str) -> None:
        with self.witness.open("a") as witness:
            witness.write(f"K - 0 {name}\n")

    def kill_fighter(self) -> None:
        place = self.rng.randrange(2)
        name, process = self.fighters[place]
        assert process.poll() is None, f"{name} has ended by itself"
        process.kill()
        process.wait()
        self.note_death(name)
        self.fighters[place] = self.new_fighter()

    def kill_gateway(self) -> None:
        self.gateway.kill()
        self.gateway.start()

    def taken(self) -> int:
        return self.witness.read_text().count("A ") if self.witness.exists() else 0

    def wait_for(self, taken: int) -> None:
        deadline = time.monotonic() + 60
        while self.taken() < taken:
            assert time.monotonic() < deadline, f"stuck at {self.taken()} of {taken}"
            time.sleep(0.01)  # the witness is a file; it announces nothing

    def end(self) -> None:
        for name, process in self.fighters:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.note_death(name)

    def orphans_end(self) -> None:
        """What the dead held can be had by others once lease and delay are over."""
        wait_s = TTL_S + DELAY_S + SLACK_S
        answer = call(self.gateway, "POST", "/v1/locks", {"paths": PATHS, "owner": "last", "wait_s": wait_s})
        assert answer.status == 201, answer.json()
        newest = max(int(line.split()[2]) for line in self.witness.read_text().splitlines())
        assert answer.json()["token"] > newest


def faults_of(lines: list[str]) -> list[str]:
    """Return what the witness shows that must not be."""
    holder: dict[str, tuple[int, str]] = {}
    newest: dict[str, int] = {}
    dead: set[str] = set()
    faults = []
    for line in lines:
        letter, path, token_text, name = line.split()
        token = int(token_text)
        if letter == "K":
            dead.add(name)
        elif letter == "A":
            if name in dead:
                faults.append(f"a dead one writes: {line}")
            if path in holder and holder[path][1] not in dead:
                faults.append(f"two holders of {path}: {holder[path]} and {(token, name)}")
            if token <= newest.get(path, 0):
                faults.append(f"the token of {path} did not rise: {newest[path]}, {token}")
            holder[path], newest[path] = (token, name), token
        elif holder.pop(path, None) != (token, name):
            faults.append(f"{line} without having it")
    return faults


def fight(folder: Path, takes: int, seed: int, between: int) -> Arena:
    arena = Arena(folder, seed)
    try:
        goal = between
        while goal < takes:
            arena.wait_for(goal)
            attack: Callable[[], None] = arena.rng.choice([arena.kill_fighter, arena.kill_gateway])
            attack()
            goal = arena.taken() + between
        arena.end()
        arena.orphans_end()
    finally:
        for _, process in arena.fighters:
            process.kill()
        if arena.gateway.running():
            arena.gateway.kill()
    lines = arena.witness.read_text().splitlines()
    assert faults_of(lines) == []
    assert len({line.split()[3] for line in lines}) > 2, "no fighter was killed"
    assert not [line for line in arena.gateway.log if "Traceback" in line]
    return arena


def test_a_short_fight(tmp_path: Path) -> None:
    fight(tmp_path, takes=60, seed=3, between=7)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_thousand_locks(tmp_path: Path) -> None:
    fight(tmp_path, takes=1000, seed=4, between=9)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["A x 1 a", "A x 2 b"], "two holders"),
        (["A x 5 a", "R x 5 a", "A x 4 b"], "did not rise"),
        (["A x 1 a", "R x 1 a", "R x 1 a"], "without having it"),
        (["A x 1 a", "K - 0 a", "A y 2 a"], "a dead one writes"),
    ],
)
def test_the_check_sees_what_must_not_be(lines: list[str], fault: str) -> None:
    (found,) = faults_of(lines)
    assert fault in found


def test_the_check_passes_what_may_be() -> None:
    lines = ["A x 1 a", "R x 1 a", "A x 2 b", "K - 0 b", "A x 7 a", "A y 7 a", "R x 7 a", "R y 7 a"]
    assert faults_of(lines) == []
