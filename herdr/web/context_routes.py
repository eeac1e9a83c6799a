"""The surface of the shared context: its methods and paths, like `herdr.web.routes` for the rest."""

from herdr.web.artifacts_api import ArtifactsApi
from herdr.web.context_api import ContextApi
from herdr.web.context_bodies import IndexBody, MessageBody
from herdr.web.context_desk import Artifacts, Graphs, Pictures, Sessions, Snapshots
from herdr.web.sessions_api import SessionsApi
from herdr.web.snapshots_api import SnapshotsApi
from herdr.web.surface import Endpoint

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
    context, histories = ContextApi(graphs, pictures), SessionsApi(sessions, pictures, data_max)
    shelf, files = ArtifactsApi(artifacts), SnapshotsApi(snapshots)
    at, graph = "/v1/context/{workspace}", "/v1/context/{workspace}/graph"
    said, one = "/v1/sessions/{session:path}/messages", "/v1/artifacts/{name:path}"
    file = f"{graph}/files/{{path:path}}"
    answers = {**NO_SESSION, **KNOWN}
    stored = {201: "the name is new", **READ_ONLY, 413: "larger than the whole cache, or than a body may be"}
    taken = {400: "the file is damaged, cut off or of another version", 413: "the file is too large"}
    listed = "List artifacts"
    return [
        Endpoint("GET", at, CONTEXT, context.manifest, "What there is of a workspace", answers=GRAPH),
        Endpoint(
            "POST", f"{at}/index", CONTEXT, context.index, "Look at all files again", IndexBody, None, GRAPH
        ),
        Endpoint(
            "GET", f"{graph}/map", CONTEXT, context.map, "Ranked outline within a budget", answers=GRAPH
        ),
        Endpoint("GET", file, CONTEXT, context.file, "Outline of one file", answers=GRAPH),
        Endpoint("GET", f"{graph}/symbols", CONTEXT, context.symbols, "Find definitions", answers=GRAPH),
        Endpoint("GET", f"{graph}/callers", CONTEXT, context.callers, "Who calls a symbol", answers=GRAPH),
        Endpoint("GET", f"{graph}/callees", CONTEXT, context.callees, "What a symbol calls", answers=GRAPH),
        Endpoint(
            "GET", f"{graph}/dependents", CONTEXT, context.dependents, "Who imports a file", answers=GRAPH
        ),
        Endpoint("GET", f"{graph}/skipped", CONTEXT, context.skipped, "What was not read", answers=GRAPH),
        Endpoint(
            "GET",
            "/v1/blobs/{sha256}",
            CONTEXT,
            context.blob,
            "Content by its hash",
            answers={**KNOWN, 404: "unknown"},
        ),
        # Before the session itself, whose name may hold a slash
        Endpoint("GET", said, CONTEXT, histories.messages, "A session's messages", answers=answers),
        Endpoint(
            "POST",
            said,
            CONTEXT,
            histories.say,
            "Record messages",
            MessageBody,
            None,
            READ_ONLY,
        ),
        Endpoint("GET", "/v1/sessions", CONTEXT, histories.list, "List sessions", answers=KNOWN),
        Endpoint(
            "GET",
            "/v1/sessions/{session:path}",
            CONTEXT,
            histories.window,
            "A session's window",
            answers=answers,
        ),
        Endpoint(
            "DELETE",
            "/v1/sessions/{session:path}",
            CONTEXT,
            histories.delete,
            "Forget a session",
            answers=NO_SESSION,
        ),
        Endpoint("GET", "/v1/artifacts", CONTEXT, shelf.list, listed, answers=KNOWN),
        Endpoint("PUT", one, CONTEXT, shelf.put, "Store an artifact", answers=stored),
        Endpoint("GET", one, CONTEXT, shelf.get, "Read an artifact", answers={**NO_ARTIFACT, **KNOWN}),
        Endpoint("DELETE", one, CONTEXT, shelf.delete, "Remove an artifact", answers=NO_ARTIFACT),
        Endpoint(
            "GET", "/v1/snapshots/{workspace}", CONTEXT, files.export, "Export a snapshot", answers=GRAPH
        ),
        Endpoint(
            "POST", "/v1/snapshots/{workspace}", ADMIN, files.receive, "Import a snapshot", answers=taken
        ),
    ]
