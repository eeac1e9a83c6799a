"""Pure: OpenAI's Responses, the client's side, as Codex speaks it. The module is a `dialect.Dialect`."""

from herdr.pool.protocols.openai.failures import error_body
from herdr.pool.protocols.responses.encode import encoder, whole
from herdr.pool.protocols.responses.parse import parse

__all__ = ["encoder", "error_body", "parse", "whole"]
