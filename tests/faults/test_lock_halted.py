"""A holder that is halted for longer than the gateway waits for its pong, and goes on where it was."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from gateway import running_gateway
from wire import all_events, call, health

HOLDER = """
import asyncio, sys
from herdr_sdk import Hub

async def main():
    async with Hub(name="halted") as hub, hub.lock("x", ttl=300) as lock:
        print(lock.token, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await lock.renew()
        print(lock.token, flush=True)

asyncio.run(main())
"""
PONG_S = 90.0  # two pings, 20 s apart, and their 20 s; a machine that does much else takes longer


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_halted_holder_keeps_its_lock(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        environ = {**os.environ, "HERDR_GATEWAY_URL": gateway.url}
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            assert holder.stdin is not None and holder.stdout is not None
            token = int(holder.stdout.readline())
            holder.send_signal(signal.SIGSTOP)
            for _ in range(int(PONG_S * 10)):
                if health(gateway)["connections"]["websocket"] == 0:
                    break
                threading.Event().wait(0.1)  # nothing announces that a connection was given up
            assert health(gateway)["connections"]["websocket"] == 0
            assert [lock["token"] for lock in call(gateway, "GET", "/v1/locks").json()["locks"]] == [token]
            holder.send_signal(signal.SIGCONT)
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert int(holder.stdout.readline()) == token
        assert holder.returncode == 0
        assert [e["data"]["reason"] for e in all_events(gateway, "type=lock.released")] == ["released"]
