import os
import socket
import subprocess
import sys
from pathlib import Path

from herdr.cli.checks import processes


def test_who_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        found = processes.listener(port)
        assert found is not None and found.pid == os.getpid() and "pytest" in str(found)
        assert processes.is_listening(port)
    assert processes.listener(port) is None and not processes.is_listening(port)


def test_who_listens_on_ipv6() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        found = processes.listener(listener.getsockname()[1])
    assert found is not None and found.pid == os.getpid()


def test_a_connection_is_no_listener() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as one,
    ):
        assert processes.listener(one.getsockname()[1]) is None


def test_long_command_lines_are_cut() -> None:
    command = [sys.executable, "-c", "print(flush=True), input()", "x" * 100]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        found = processes.process(child.pid)
        child.communicate(b"\n")
    assert len(found.name) == 60 and found.name.endswith("…")
    assert processes.process(2**22 + 1).name == "" and str(processes.Process(7, "")) == "pid 7"


def test_files_and_limits(tmp_path: Path) -> None:
    with (tmp_path / "herdr.lock").open("w"):
        assert processes.open_file(os.getpid(), "herdr.lock") == tmp_path / "herdr.lock"
    assert processes.open_file(os.getpid(), "herdr.lock") is None
    limits = tmp_path / "7/limits"
    limits.parent.mkdir()
    limits.write_text("Limit  Soft Limit  Hard Limit  Units\nMax open files            20000  30000  files\n")
    assert processes.open_files_max(7, tmp_path) == 20000
    assert processes.open_files_max(8, tmp_path) is None


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    assert processes.listener(1, tmp_path) is None
    assert processes.lock_holder(tmp_path, tmp_path) is None
    assert processes.process(1, tmp_path).name == ""
