"""`kill -9` at random moments under load: what was accepted is there once, and followers miss nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from crash_load import Load, problems, read_log, restart_often
from wire import health

from herdr.storage.sqlite.backup import verify

LONGEST_S = 0.3  # of a life under load; a batch is formed and committed every few milliseconds

# Runs the gateway with a commit that takes 20 ms, as on a slow disk, and answers before or after it.
LAUNCHER = """
import asyncio, sys
from herdr.bus import writer
from herdr.cli.main import main

commit = writer.Writer._commit

async def slow_commit(self, items, decision, puts, waiting):
    if {answer_first}:
        for item, receipt in decision.answers:
            item.settle(receipt)
    await asyncio.sleep(0.02)
    await commit(self, items, decision, puts, waiting)

writer.Writer._commit = slow_commit
sys.exit(main())
"""


@contextmanager
def loaded(load: Load) -> Iterator[Load]:
    try:
        load.start()
        yield load
    finally:
        if load.gateway.running():
            load.gateway.kill()


def run(load: Load, kills: int, seed: int, *, politely: bool = False) -> list[str]:
    """End the gateway again and again, and return what does not hold afterwards."""
    restart_often(load, kills, seed, LONGEST_S, politely=politely)
    load.finish(lambda: int(health(load.gateway)["head"]))
    assert not load.failures, load.failures
    log = read_log(load.gateway)
    assert len(log) > 50 * kills and len(load.receipts) >= len(log), "there was no load to speak of"
    return problems(load, log)


def check(tmp_path: Path, kills: int, seed: int, *, politely: bool = False) -> None:
    with loaded(Load(tmp_path / "data")) as load:
        found = run(load, kills, seed, politely=politely)
        assert not found, f"seed {seed}: {len(found)} problems, among them {found[:5]}"
        assert not [line for line in load.gateway.log if "Traceback" in line]
        assert load.gateway.stop() == 0
    assert verify(tmp_path / "data" / "events.db").problems == ()


def test_a_few_kills_under_load(tmp_path: Path) -> None:
    check(tmp_path, kills=8, seed=1)


def test_a_few_polite_stops_under_load(tmp_path: Path) -> None:
    """SIGTERM with followers and publishes under way: exit code 0, and the same promises."""
    check(tmp_path, kills=4, seed=4, politely=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_kills_under_load(tmp_path: Path) -> None:
    check(tmp_path, kills=200, seed=2)


@pytest.mark.parametrize("answer_first", [True, False])
def test_the_check_sees_answers_that_come_before_the_commit(tmp_path: Path, answer_first: bool) -> None:
    """The negative control: with the commit moved after the answer the same check must find losses."""
    launcher = tmp_path / "launcher.py"
    launcher.write_text(LAUNCHER.format(answer_first=answer_first))
    with loaded(Load(tmp_path / "data", (str(launcher),))) as load:
        found = run(load, kills=4, seed=3)
    lost = [text for text in found if "is lost" in text or "stands at" in text]
    assert bool(lost) is answer_first, found[:5]
