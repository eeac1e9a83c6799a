"""A program that fights for locks over HTTP and writes what it holds into a witness file.

    python lock_fighter.py URL NAME SEED WITNESS

Each line of the witness is `A path token name` (got it), `R path token name` (about to give it back) or
`L path token name` (the lease may be over, so it is not relied on any more). Lines are appended in one write
each, so their order in the file is the order in which they happened. Runs until it is killed.
"""

import http.client
import json
import os
import random
import sys
import time
from typing import Any
from urllib.parse import urlsplit

PATHS = [f"src/f{n}.py" for n in range(3)]
TTL_S = 3.0
WAIT_S = 8.0
WORK_S = (0.0, 0.0, 0.05, 1.5)  # what holders do takes time; now and then longer than a restart does


class Fighter:
    def __init__(self, url: str, name: str, seed: int, witness: str) -> None:
        self.address = urlsplit(url).netloc
        self.name = name
        self.rng = random.Random(seed)
        self.witness = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, letter: str, paths: list[str], token: int) -> None:
        lines = "".join(f"{letter} {path} {token} {self.name}\n" for path in paths)
        os.write(self.witness, lines.encode())

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
        ask = {"paths": wanted, "owner": self.name, "ttl_s": TTL_S, "wait_s": WAIT_S}
        status, lease = self.call("POST", "/v1/locks", ask)
        if status == 409:
            return
        assert status == 201, lease
        sure_until = time.monotonic() + TTL_S
        status, lease = self.call("PUT", f"/v1/locks/{lease['lock']}", {"token": lease["token"]})
        if status == 404:  # the renewal came too late
            return
        assert status == 200, lease
        if time.monotonic() > sure_until:
            return
        self.write("A", wanted, lease["token"])
        time.sleep(self.rng.choice(WORK_S))
        self.write("R" if time.monotonic() < sure_until else "L", wanted, lease["token"])
        status, answer = self.call("DELETE", f"/v1/locks/{lease['lock']}", {"token": lease["token"]})
        assert status in (204, 404), answer  # 404: released before the gateway was killed, or over


def main() -> None:
    url, name, seed, witness = sys.argv[1:]
    fighter = Fighter(url, name, int(seed), witness)
    while True:
        fighter.round()


if __name__ == "__main__":
    main()
