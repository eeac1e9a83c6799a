import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from command_line import Cli

from herdr import __version__

HEAVY = {"uvicorn", "starlette", "aiohttp", "aiosqlite", "sqlite3", "asyncio", "watchfiles"}


@contextmanager
def something_else(status: int, body: bytes) -> Iterator[str]:
    """A server that gives the same answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_it_says_how_the_gateway_is(herdr: Cli) -> None:
    herdr("publish", "--ndjson", stdin='{"type":"index.updated"}\n' * 100)
    done = herdr("status")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].startswith(f"ok: herdr {__version__} at {herdr.url}, up ")
    assert "queue        0 waiting (P0 0, P1 0, P2 0)" in lines
    assert any(line.startswith("dropped ") and line.endswith(" rate limited") for line in lines)
    assert any(line.startswith("store        sqlite, events 1 to ") for line in lines)


def test_json_is_the_health_report(shared: Cli) -> None:
    with urllib.request.urlopen(f"{shared.url}/healthz") as answer:
        keys = json.load(answer).keys()
    assert json.loads(shared("status", "--json").stdout).keys() == keys


def test_quiet_says_nothing(shared: Cli, nowhere: Cli) -> None:
    done = shared("status", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert nowhere("status", "--quiet").returncode == 3


def test_a_failing_gateway_exits_with_1_and_says_why(tmp_path: Path) -> None:
    with something_else(
        503, b'{"status":"failing","reasons":["the disk is \\u001b full"],"version":"9"}'
    ) as url:
        done = Cli(url, tmp_path)("status")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        f"failing: herdr 9 at {url}, up less than a second",
        "  the disk is \\u001b full",
    ]


def test_something_else_is_not_taken_for_a_gateway(tmp_path: Path) -> None:
    for body in (b"<html>", b'{"status":"fine"}', b"[]", b""):
        with something_else(200, body) as url:
            done = Cli(url, tmp_path)("status")
        assert (done.returncode, done.stdout) == (3, "")
        assert f"what answers at {url} (HTTP 200) is not a Herdr gateway" in done.stderr


def test_it_loads_nothing_of_the_gateway(shared: Cli) -> None:
    script = (
        "import sys\nfrom herdr.cli.main import main\n"
        f"assert main(['status', '--quiet', '--url', {shared.url!r}]) == 0\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
