"""The tables of context.db."""

from herdr.storage.sqlite.schema import Owner

OWNER = Owner(
    0x48524443,  # "HRDC"; events.db has "HRDR"
    "move it out of the data folder, Herdr then makes one of its own",
    "start the newer Herdr again, or move the file out of the data folder to begin without artifacts",
)

# Position in this tuple + 1 = the `user_version` that a step leads to. Released steps never change.
MIGRATIONS: tuple[str, ...] = (
    f"""
    PRAGMA application_id = {OWNER.application_id};
    CREATE TABLE meta (
        name  TEXT PRIMARY KEY,
        value ANY NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES ('folded', 0), ('offset', 0), ('cached_bytes', 0), ('message_bytes', 0);

    CREATE TABLE blobs (
        id           INTEGER PRIMARY KEY,
        sha          BLOB NOT NULL UNIQUE,
        size         INTEGER NOT NULL,
        owners       INTEGER NOT NULL,
        used_us      INTEGER NOT NULL,
        encoding     INTEGER NOT NULL,
        content_type TEXT NOT NULL,
        body         BLOB NOT NULL
    ) STRICT;
    CREATE INDEX blobs_cached ON blobs (used_us, size) WHERE owners = 0;

    CREATE TABLE artifacts (
        id           INTEGER PRIMARY KEY,
        workspace    TEXT NOT NULL,
        name         TEXT NOT NULL,
        kind         TEXT NOT NULL,
        blob         INTEGER NOT NULL,
        bytes        INTEGER NOT NULL,
        content_type TEXT NOT NULL,
        created_us   INTEGER NOT NULL,
        expires_us   INTEGER NOT NULL,
        used_us      INTEGER NOT NULL,
        author       TEXT NOT NULL,
        session      TEXT,
        based_on     TEXT,
        redacted     INTEGER NOT NULL,
        UNIQUE (workspace, name)
    ) STRICT;
    CREATE INDEX artifacts_used ON artifacts (used_us, bytes);
    CREATE INDEX artifacts_expiry ON artifacts (expires_us);

    CREATE TABLE sessions (
        sid         INTEGER PRIMARY KEY AUTOINCREMENT,
        session     TEXT NOT NULL UNIQUE,
        workspace   TEXT NOT NULL,
        messages    INTEGER NOT NULL,
        full_tokens INTEGER NOT NULL,
        size        INTEGER NOT NULL,
        first_us    INTEGER NOT NULL,
        updated_us  INTEGER NOT NULL,
        sources     TEXT NOT NULL,
        state       BLOB NOT NULL
    ) STRICT;
    CREATE INDEX sessions_updated ON sessions (updated_us);
    CREATE INDEX sessions_of ON sessions (workspace, updated_us);

    CREATE TABLE messages (
        seq     INTEGER PRIMARY KEY,
        sid     INTEGER NOT NULL,
        time_us INTEGER NOT NULL,
        size    INTEGER NOT NULL,
        tokens  INTEGER NOT NULL,
        blob    INTEGER,
        id      TEXT NOT NULL,
        role    TEXT NOT NULL,
        source  TEXT NOT NULL,
        about   BLOB NOT NULL,
        body    BLOB NOT NULL
    ) STRICT;
    CREATE INDEX messages_of ON messages (sid);
    CREATE TABLE doomed (sid INTEGER PRIMARY KEY) STRICT;
    """,
)
