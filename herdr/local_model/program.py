"""Which llama.cpp server is there, how it is called, and whether the model is one."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from herdr.errors import StartupError

PROGRAM, PACKAGE = "llama-server", "xllamacpp"
MAGIC = b"GGUF"  # https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: the first four bytes
_LFS = b"version https://git-lfs"
_XLLAMA = Path(__file__).with_name("xllama.py")


def check_model(path: Path) -> None:
    """Raise StartupError unless the file can be read and begins as a GGUF file does."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_LFS))
    except OSError as error:
        raise StartupError(
            f"the model {path} cannot be read: {error.strerror}; give --model the path of a .gguf file"
        ) from error
    if start == _LFS:
        raise StartupError(
            f"{path} is a Git LFS pointer, not the model itself: run `git lfs pull` where it was cloned"
        )
    if not start.startswith(MAGIC):
        raise StartupError(
            f"{path} is no GGUF file, the only kind that llama.cpp loads: download the model as .gguf again, "
            "or convert it with llama.cpp's convert_hf_to_gguf.py"
        )


def find_program() -> tuple[list[str], str]:
    """Return how the command line of a llama.cpp server begins, and its name; raises StartupError."""
    if (found := shutil.which(PROGRAM)) is not None:
        return [found], PROGRAM
    if find_spec(PACKAGE) is not None:
        return [*script(_XLLAMA)], PACKAGE
    raise StartupError(
        "there is no llama.cpp server to run the model with: put llama-server on PATH (for instance "
        "`brew install llama.cpp`), or run pip install 'herdr-gateway[local]'"
    )


def script(path: Path) -> list[str]:
    """Return how a script of ours is run: `-P`, or modules beside it would pass for Python's own."""
    return [sys.executable, "-P", str(path)]


def options(model: Path, slots: int, context: int, port: int, slot_folder: Path) -> list[str]:
    """Return the options, for `llama-server` and our own script alike.

    `context` is that of one slot, in tokens; the server's own option is for all of them. Since the number of slots
    is given, each has its part to itself (`--kv-unified` is the default only where the server chooses it).
    """
    return [
        *("--model", str(model.absolute())),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--parallel", str(slots), "--ctx-size", str(slots * context)),
        *(
            "--slot-save-path",
            os.path.join(slot_folder.absolute(), ""),
        ),  # builds differ on who adds the last slash
        *("--slots", "--props", "--jinja"),
    ]
