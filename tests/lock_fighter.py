"""A program that fights for locks over HTTP and writes what it does into a witness file.

    python lock_fighter.py URL NAME SEED WITNESS

`lock_witness` says what the lines of the witness mean. Runs until it is killed.
"""

import http.client
import json
import os
import random
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from lock_witness import Line

PATHS = [f"src/f{n}.py" for n in range(3)]
TTL_S = 2.0
WAIT_S = (0.3, 20.0, 20.0)  # now and then one gives up; who waits for a dead one's lock mostly gets it
WORK_S = (0.0, 0.0, 0.05, 1.0)  # what holders do takes time; now and then longer than a restart does


class Fighter:
    def __init__(self, url: str, name: str, seed: int, witness: str) -> None:
        self.address = urlsplit(url).netloc
        self.name = name
        self.rng = random.Random(seed)
        self.witness = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, letter: str, at: float, paths: list[str], token: int = 0) -> None:
        os.write(self.witness, f"{Line(letter, at, self.name, token, tuple(paths))}\n".encode())

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Ask until there is an answer: the gateway is killed now and then."""
        while True:
            connection = http.client.HTTPConnection(self.address, timeout=30)
            try:
                connection.request(method, path, json.dumps(body) if body is not None else None)
                answer = connection.getresponse()
                raw = answer.read()
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)  # until it is back; there is nothing to wait for but its port
                continue
            finally:
                connection.close()
            if answer.status != 503:
                return answer.status, json.loads(raw) if raw else {}

    def round(self) -> None:
        wanted = sorted(self.rng.sample(PATHS, self.rng.choice((1, 1, 2, 3))))
        ask = {"paths": wanted, "owner": self.name, "ttl_s": TTL_S, "wait_s": self.rng.choice(WAIT_S)}
        self.write("W", time.monotonic(), wanted)
        status, lease = self.call("POST", "/v1/locks", ask)
        granted = (
            time.monotonic()
        )  # the renewal is not sent yet, so its lease lasts for longer than from here
        if status == 409:
            self.write("N", granted, wanted)
            return
        assert status == 201, lease
        self.write("G", granted, wanted, lease["token"])
        self.use(wanted, lease, granted + TTL_S)
        status, answer = self.call("DELETE", f"/v1/locks/{lease['lock']}", {"token": lease["token"]})
        assert status in (204, 404), answer  # 404: released before the gateway was killed, or over
        self.write("F" if status == 204 else "X", time.monotonic(), wanted, lease["token"])

    def use(self, wanted: list[str], lease: dict[str, Any], sure_until: float) -> None:
        status, answer = self.call("PUT", f"/v1/locks/{lease['lock']}", {"token": lease["token"]})
        assert status in (200, 404), answer  # 404: the renewal came too late
        if status == 404 or (taken := time.monotonic()) > sure_until:
            return
        self.write("A", taken, wanted, lease["token"])
        time.sleep(self.rng.choice(WORK_S))
        left = time.monotonic()
        self.write("R" if left < sure_until else "L", left, wanted, lease["token"])


def main() -> None:
    url, name, seed, witness = sys.argv[1:]
    fighter = Fighter(url, name, int(seed), witness)
    while True:
        fighter.round()


if __name__ == "__main__":
    main()
