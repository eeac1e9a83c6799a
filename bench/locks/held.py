"""Ten thousand locks as they are held in a large repository that many agents work in, mostly globs."""

from collections.abc import Iterator

from herdr.locks.lock import FOLDER, Ask, Lock, Mode, Name

PACKAGES, MODULES = 40, 25
HELD = 10 * PACKAGES * MODULES
OWNERS = 100
TTL_S = 3600.0
SHAPES: tuple[tuple[Mode, str], ...] = (
    ("write", "packages/{p}/src/{m}/**/*.py"),
    ("write", "packages/{p}/src/{m}/**/*.ts"),
    ("write", "packages/{p}/src/{m}/**/*_test.go"),
    ("write", "packages/{p}/src/{m}/*.css"),
    ("write", "packages/{p}/test?/{m}/*.json"),
    ("write", "packages/*/migrations/{p}_{m}_*.sql"),
    ("write", "apps/**/{p}_{m}.pb.go"),
    ("intent", "packages/{p}/src/**/*.md"),
    ("write", "packages/{p}/src/{m}/index.html"),
    ("write", "packages/{p}/assets/{m}/"),
)
"""One lock of each for every module; the last two are no globs. Only the shared ones overlap each other."""


def held() -> Iterator[Ask]:
    """Yield an ask for each of the `HELD` locks; all of them can be granted."""
    for number in range(HELD):
        place, shape = divmod(number, len(SHAPES))
        mode, pattern = SHAPES[shape]
        yield ask(f"held-{number}", f"agent-{number % OWNERS}", at(pattern, place), mode)


def at(pattern: str, place: int) -> str:
    """Put the names of a package and a module into a pattern."""
    package, module = divmod(place, MODULES)
    return pattern.format(p=f"package{package}", m=f"module{module}")


def ask(lock: str, owner: str, path: str, mode: Mode = "write") -> Ask:
    """Return a request for one path of the workspace `shop`."""
    return Ask(lock, owner, (_name(path),), (path,), TTL_S, mode, "shop", "bench")


def locked(one: Ask, token: int) -> Lock:
    """Return the lock that a request leads to."""
    names = ("lock", "owner", "mode", "workspace", "paths", "names", "ttl_s", "purpose")
    return Lock(**{name: getattr(one, name) for name in names}, token=token, since_us=0, renewed=token)


def _name(path: str) -> Name:
    """What a path that is canonical already comes to."""
    segments = path.split("/")
    if segments[-1] == "":
        return Name("shop", tuple(segments[:-1]), FOLDER, path)
    wild = next((n for n, segment in enumerate(segments) if set(segment) & set("*?")), len(segments))
    return Name("shop", tuple(segments[:wild]), tuple(segments[wild:]), path)
