"""llama.cpp's server out of the package `xllamacpp`, with the few options of `llama-server` that we use.

Run by its path, in a process of its own: a crash in llama.cpp is not the gateway's, and its memory goes with it.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module


def main(argv: Sequence[str]) -> int:
    """Serve until a signal ends the process; returns 1 when the server does not start."""
    args = build_parser().parse_args(argv)
    xllamacpp = import_module("xllamacpp")  # the optional extra `local`: absent where nobody runs this
    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.hostnames, params.port = [args.host], args.port
    params.n_parallel, params.n_ctx, params.kv_unified = args.parallel, args.ctx_size, False
    params.slot_save_path, params.use_jinja = args.slot_save_path, args.jinja
    params.endpoint_slots, params.endpoint_props = args.slots, args.props
    if threads := os.environ.get(
        "LLAMA_ARG_THREADS"
    ):  # by default every core, which stalls on a busy machine
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    if key := os.environ.get("LLAMA_API_KEY"):
        params.api_keys = [key]
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        print(f"the server did not start: {error}", file=sys.stderr)
        return 1
    print("listening", server.listening_address, flush=True)
    while True:
        signal.pause()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the options, which are called as those of `llama-server`."""
    parser = argparse.ArgumentParser(prog="xllama", description=__doc__)
    for name in ("--model", "--host", "--slot-save-path"):
        parser.add_argument(name, required=True)
    for name in ("--port", "--parallel", "--ctx-size"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--slots", "--props", "--jinja"):
        parser.add_argument(name, action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
