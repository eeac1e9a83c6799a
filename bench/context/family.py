"""How much memory and processor a gateway and its children have had."""

from pathlib import Path

from bench.process import cpu_s

MIB = 1024.0  # of the KiB that /proc gives


def indexer_peak_mib(gateway: int) -> float:
    """Return the peak resident memory of a gateway's indexer and its parse workers, each at its own peak."""
    return sum(map(peak_mib, _indexer(gateway)))


def family_cpu_s(gateway: int) -> float:
    """Return the processor seconds that a gateway, its indexer and the parse workers have used."""
    return sum(map(cpu_s, (gateway, *_indexer(gateway))))


def _indexer(gateway: int) -> list[int]:
    indexers = [pid for pid in children(gateway) if "herdr.indexer" in _command(pid)]
    return [one for pid in indexers for one in (pid, *children(pid))]


def peak_mib(pid: int) -> float:
    """Return the most resident memory that a process has had so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / MIB for line in lines if line.startswith("VmHWM:"))


def children(pid: int) -> list[int]:
    """Return the processes that this one started and that still run."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
