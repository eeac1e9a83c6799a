"""`llama-server` for tests: a real llama.cpp out of `xllamacpp`, one thread, and a template with tools.

Run as a program. One thread, because llama.cpp's threads wait for each other at every layer: where something else
wants the CPU as well, two of them were twenty times slower than one. SmolLM2's own template drops the tools.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from xllamacpp import CommonParams, Server  # type: ignore[import-untyped, unused-ignore]

from herdr.local_model.xllama import build_parser

TEMPLATE = Path(__file__).with_name("chatml_tools.jinja")


def main(argv: Sequence[str]) -> None:
    """Serve until a signal ends the process."""
    args = build_parser().parse_args(argv)
    params = CommonParams()
    params.model.path = args.model
    params.hostnames, params.port = [args.host], args.port
    params.n_parallel, params.n_ctx, params.kv_unified = args.parallel, args.ctx_size, False
    params.slot_save_path, params.use_jinja = args.slot_save_path, True
    params.endpoint_slots = params.endpoint_props = True
    params.chat_template = TEMPLATE.read_text()
    params.sampling.temp = 0.0  # where the client leaves it open
    threads = int(os.environ.get("LLAMA_ARG_THREADS", "1"))
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = Server(params)  # without an API key: the tests ask it for rendered prompts
    print("listening", server.listening_address, flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
