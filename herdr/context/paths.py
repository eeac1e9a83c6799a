"""Pure: paths of a workspace as clients give them."""

from herdr.errors import FieldError, InvalidInput


def checked_path(path: str) -> str:
    """Return a path of a workspace with `/` and without `.`; raises InvalidInput for one that leads out of it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\0" in path or not parts:
        message = "a path below the workspace's folder, with / between its parts"
        raise InvalidInput(f"{path[:200]!r} is not {message}", "bad_path", [FieldError("path", message)])
    return "/".join(parts)
