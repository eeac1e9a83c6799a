"""Pure: opencode, which takes hooks as a plugin: a file of JavaScript, ours alone."""

import json
from typing import Any

from herdr.connect.edits import Edit
from herdr.connect.recipe import CURL_S, SERVER, TOKEN_ENV, File, Recipe, Wish

CLIENT = "opencode"
HOME = "XDG_CONFIG_HOME"
SCHEMA = "https://opencode.ai/config.json"
"""What it writes into a file without one itself; so the file stays as we have left it."""
_PLUGIN = """\
// Written by `herdr connect opencode`; `herdr connect opencode --undo` removes it.
const GATEWAY = %(url)s;
const WRITES = ["edit", "write", "multiedit", "patch", "apply_patch"];
const EVENTS = ["session.created", "session.idle", "session.error", "session.compacted", "session.deleted"];

export const Herdr = async ({ directory }) => {
  const told = new Map();
  const tell = async (event, session, more = {}) => {
    const headers = { "Content-Type": "application/json" };
    if (process.env.%(token)s) headers.Authorization = `Bearer ${process.env.%(token)s}`;
    const body = JSON.stringify({ event, session, directory, ...more });
    try {
      const signal = AbortSignal.timeout(%(timeout)d);
      const answer = await fetch(`${GATEWAY}/hooks/opencode`, { method: "POST", headers, body, signal });
      return answer.ok ? await answer.json() : {};
    } catch {
      return {}; // without a gateway the tool goes on
    }
  };
  const text = (parts) => (parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  return {
    "chat.message": async (input, output) => {
      const answer = await tell("chat.message", input.sessionID, { text: text(output.parts) });
      const context = [told.get(input.sessionID), answer.context].filter(Boolean).join("\\n");
      if (context) told.set(input.sessionID, context);
    },
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input;
      if (!WRITES.includes(tool)) return;
      const answer = await tell("tool.execute.before", sessionID, { tool, call: callID, args: output.args });
      if (answer.deny) throw new Error(answer.deny);
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input;
      const answer = await tell("tool.execute.after", sessionID, { tool, call: callID, args });
      const context = [told.get(sessionID), answer.context].filter(Boolean).join("\\n");
      told.delete(sessionID);
      if (context && output && typeof output.output === "string") output.output += `\\n\\n${context}`;
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id;
      if (session && EVENTS.includes(event.type)) await tell(event.type, session);
      if (event.type === "session.deleted") told.delete(session);
    },
  };
};
"""


def _edits(wish: Wish) -> tuple[Edit, ...]:
    server: dict[str, Any] = {"type": "remote", "url": f"{wish.url}/mcp", "enabled": True}
    if wish.token:
        server["headers"] = {"Authorization": f"Bearer {{env:{TOKEN_ENV}}}"}
    edits = [Edit("missing", ("$schema",), SCHEMA), Edit("server", ("mcp", SERVER), server)]
    if wish.model:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Herdr",
            "options": {
                "baseURL": f"{wish.url}/v1",
                "apiKey": f"{{env:{TOKEN_ENV}}}" if wish.token else "local",
            },
            "models": {"local": {"name": "local"}},
        }
        edits += [Edit("put", ("provider", SERVER), provider), Edit("put", ("model",), f"{SERVER}/local")]
    return tuple(edits)


def _plugin(wish: Wish) -> str:
    return _PLUGIN % {"url": json.dumps(wish.url), "token": TOKEN_ENV, "timeout": CURL_S * 1000}


def _project(wish: Wish) -> list[File]:
    return [
        File("opencode.json", _edits(wish), others=("opencode.jsonc",)),
        File(".opencode/plugins/herdr.js", whole=_plugin(wish)),
    ]


def _user(wish: Wish) -> list[File]:
    at = ".config/opencode"
    return [
        File(f"{at}/opencode.json", _edits(wish), others=(f"{at}/opencode.jsonc",), home=HOME),
        File(f"{at}/plugins/herdr.js", whole=_plugin(wish), home=HOME),
    ]


RECIPE = Recipe(
    CLIENT,
    "opencode",
    {"project": _project, "user": _user},
    "start a new session",
    f"its model is {SERVER}/local from its next session on",
)
