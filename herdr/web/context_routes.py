"""The surface of the shared context: its methods and paths, like `herdr.web.routes` for the rest."""

from herdr.web.artifacts_api import ArtifactsApi
from herdr.web.context_api import ContextApi
from herdr.web.context_bodies import IndexBody, MessageBody
from herdr.web.context_desk import Artifacts, Graphs, Pictures, Sessions, Snapshots
from herdr.web.sessions_api import SessionsApi
from herdr.web.snapshots_api import SnapshotsApi
from herdr.web.surface import Endpoint, Handler

CONTEXT, ADMIN = "context", "admin"

KNOWN = {304: "the client has this answer already"}
NOT_NOW = "the first index is not finished, the folder is missing, or the indexer fails; see `code`"
GRAPH = {**KNOWN, 404: "no such workspace, file or symbol", 503: NOT_NOW}
NO_SESSION = {404: "no session has this name"}
NO_ARTIFACT = {404: "no artifact has this name"}
READ_ONLY = {403: "the gateway runs for CI and stores nothing"}


def context_endpoints(
    graphs: Graphs,
    pictures: Pictures,
    sessions: Sessions,
    artifacts: Artifacts,
    snapshots: Snapshots,
    data_max: int,
) -> list[Endpoint]:
    """Return the HTTP endpoints of graph, blobs, sessions, artifacts and snapshots."""
    return [
        *_graph(ContextApi(graphs, pictures)),
        *_sessions(SessionsApi(sessions, pictures, data_max)),
        *_artifacts(ArtifactsApi(artifacts)),
        *_snapshots(SnapshotsApi(snapshots)),
    ]


def _graph(api: ContextApi) -> list[Endpoint]:
    def look_up(path: str, handler: Handler, summary: str) -> Endpoint:
        return Endpoint("GET", f"{at}{path}", CONTEXT, handler, summary, answers=GRAPH)

    at, blob = "/v1/context/{workspace}", "/v1/blobs/{sha256}"
    anew = "Look at all files again"
    return [
        look_up("", api.manifest, "What there is of a workspace"),
        Endpoint("POST", f"{at}/index", CONTEXT, api.index, anew, IndexBody, None, GRAPH),
        look_up("/graph/map", api.map, "Ranked outline within a budget"),
        look_up("/graph/files/{path:path}", api.file, "Outline of one file"),
        look_up("/graph/symbols", api.symbols, "Find definitions"),
        look_up("/graph/callers", api.callers, "Who calls a symbol"),
        look_up("/graph/callees", api.callees, "What a symbol calls"),
        look_up("/graph/dependents", api.dependents, "Who imports a file"),
        look_up("/graph/skipped", api.skipped, "What was not read"),
        Endpoint("GET", blob, CONTEXT, api.blob, "Content by its hash", answers={**KNOWN, 404: "unknown"}),
    ]


def _sessions(api: SessionsApi) -> list[Endpoint]:
    one, said = "/v1/sessions/{session:path}", "/v1/sessions/{session:path}/messages"
    answers, record = {**NO_SESSION, **KNOWN}, "Record messages"
    return [
        # Before the session itself, whose name may hold a slash
        Endpoint("GET", said, CONTEXT, api.messages, "A session's messages", answers=answers),
        Endpoint("POST", said, CONTEXT, api.say, record, MessageBody, None, {201: "recorded", **READ_ONLY}),
        Endpoint("GET", "/v1/sessions", CONTEXT, api.list, "List sessions", answers=KNOWN),
        Endpoint("GET", one, CONTEXT, api.window, "A session's window", answers=answers),
        Endpoint("DELETE", one, CONTEXT, api.delete, "Forget a session", answers={**NO_SESSION, **READ_ONLY}),
    ]


def _artifacts(api: ArtifactsApi) -> list[Endpoint]:
    one = "/v1/artifacts/{name:path}"
    stored = {201: "the name is new", **READ_ONLY, 413: "larger than the whole cache, or than a body may be"}
    gone = {**NO_ARTIFACT, **READ_ONLY}
    return [
        Endpoint("GET", "/v1/artifacts", CONTEXT, api.list, "List artifacts", answers=KNOWN),
        Endpoint("PUT", one, CONTEXT, api.put, "Store an artifact", answers=stored),
        Endpoint("GET", one, CONTEXT, api.get, "Read an artifact", answers={**NO_ARTIFACT, **KNOWN}),
        Endpoint("DELETE", one, CONTEXT, api.delete, "Remove an artifact", answers=gone),
    ]


def _snapshots(api: SnapshotsApi) -> list[Endpoint]:
    at = "/v1/snapshots/{workspace}"
    taken = {400: "the file is damaged, cut off or of another version", 413: "the file is too large"}
    return [
        Endpoint("GET", at, CONTEXT, api.export, "Export a snapshot", answers=GRAPH),
        Endpoint("POST", at, ADMIN, api.receive, "Import a snapshot", answers=taken),
    ]
