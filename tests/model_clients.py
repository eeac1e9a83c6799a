"""Clients of the model endpoints for tests: one plain class for each protocol, written from the APIs' documents.

They share no code with the gateway.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from gateway import GatewayProcess
from model_asking import Asking, Called, Event
from wire import Answer

Json = dict[str, Any]

WEATHER: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}


class Client(ABC):
    """One protocol: how its clients ask, and what they understand of the answers."""

    name: str
    path: str

    @abstractmethod
    def body(self, *turns: str, system: str = "", model: str = "local", **more: Any) -> Json:
        """A conversation whose turns are the user's and the assistant's in alternation."""

    @abstractmethod
    def tools(self) -> Json:
        """The fields that offer one tool, `weather`."""

    @abstractmethod
    def with_result(self, body: Json, call: Called, result: str) -> Json:
        """The next turn's body, in which the tool has answered."""

    @abstractmethod
    def text(self, whole: Json) -> str:
        """The text of a whole answer."""

    @abstractmethod
    def calls(self, whole: Json) -> list[Called]: ...

    @abstractmethod
    def tokens(self, whole: Json) -> tuple[int, int, int]:
        """Tokens of the prompt in all, from the cache, and of the answer."""

    @abstractmethod
    def assembled(self, events: Sequence[Event]) -> Json:
        """The whole answer that a stream's events add up to; asserts that they are in order and end cleanly."""

    @abstractmethod
    def heard(self, events: Sequence[Event]) -> str:
        """The text so far, of a stream that may be under way."""

    @abstractmethod
    def failure(self, events: Sequence[Event]) -> str | None:
        """What the error says with which a stream ended; None when there was none. Never beside a clean end."""

    @abstractmethod
    def refusal(self, answer: Answer) -> tuple[str, str]:
        """Check the form of an error, and return its kind and what it says."""

    def ask(
        self, gateway: GatewayProcess, *turns: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Asking:
        """Send one conversation."""
        return Asking(gateway, self.path, self.body(*turns, **more), headers)

    def whole(
        self, gateway: GatewayProcess, *turns: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Json:
        """Ask without streaming, and return the answer, which must be one."""
        with self.ask(gateway, *turns, headers=headers, stream=False, **more) as asking:
            answer = asking.answer()
        assert answer.status == 200, answer
        return dict(answer.json())

    def streamed(
        self, gateway: GatewayProcess, *turns: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Json:
        """Ask for a stream, and return the answer that it adds up to."""
        with self.ask(gateway, *turns, headers=headers, stream=True, **more) as asking:
            return self.assembled(list(asking.events()))


def alternating(turns: Sequence[str]) -> list[Json]:
    """Return turns as messages, the user's first."""
    return [{"role": ("user", "assistant")[n % 2], "content": turn} for n, turn in enumerate(turns)]


class Chat(Client):
    """Herdr's own `/v1/chat`."""

    name, path = "chat", "/v1/chat"

    def body(self, *turns: str, system: str = "", model: str = "local", **more: Any) -> Json:
        messages = [{"role": "system", "content": system}] if system else []
        return {"model": model, "messages": [*messages, *alternating(turns)], **more}

    def tools(self) -> Json:
        return {"tools": [{"name": "weather", "description": "Looks it up", "input_schema": WEATHER}]}

    def with_result(self, body: Json, call: Called, result: str) -> Json:
        used = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
        answered = {"type": "tool_result", "tool_use_id": call.id, "content": result}
        more = [{"role": "assistant", "content": [used]}, {"role": "user", "content": [answered]}]
        return {**body, "messages": [*body["messages"], *more]}

    def text(self, whole: Json) -> str:
        return str(whole["content"])

    def calls(self, whole: Json) -> list[Called]:
        return [Called(call["id"], call["name"], call["input"]) for call in whole["tool_calls"]]

    def tokens(self, whole: Json) -> tuple[int, int, int]:
        usage = whole["usage"]
        return usage["input_tokens"], usage["cached_tokens"], usage["output_tokens"]

    def assembled(self, events: Sequence[Event]) -> Json:
        names = [event.name for event in events]
        start, end = events[0].json(), events[-1].json()
        assert names[0] == "message.start" and names[-1] == "message.end", names
        assert set(names[1:-1]) <= {"message.delta", "tool.call"}, names
        places = [event.id.rpartition(".") for event in events]
        assert {place[0] for place in places} == {start["call"]}, places
        numbers = [int(place[2]) for place in places]
        assert numbers == sorted(set(numbers)), numbers
        calls = [event.json() for event in events if event.name == "tool.call"]
        return {**start, **end, "content": self.heard(events), "tool_calls": calls}

    def heard(self, events: Sequence[Event]) -> str:
        return "".join(e.json().get("text", "") for e in events if e.name == "message.delta")

    def failure(self, events: Sequence[Event]) -> str | None:
        names = [event.name for event in events]
        if "error" not in names:
            return None
        assert names.index("error") == len(names) - 1 and "message.end" not in names, names
        said = events[-1].json()
        assert said["code"], said
        return str(said["detail"])

    def refusal(self, answer: Answer) -> tuple[str, str]:
        assert answer.headers["content-type"] == "application/problem+json", answer
        problem = answer.json()
        assert {"type", "title", "status", "code", "detail"} <= set(problem), problem
        assert problem["status"] == answer.status
        return problem["code"], problem["detail"]


class Messages(Client):
    """Anthropic's Messages."""

    name, path = "messages", "/v1/messages"

    def body(self, *turns: str, system: str = "", model: str = "local", **more: Any) -> Json:
        about: Json = {"system": system} if system else {}
        return {"model": model, "max_tokens": 100, "messages": alternating(turns), **about, **more}

    def tools(self) -> Json:
        return {"tools": [{"name": "weather", "description": "Looks it up", "input_schema": WEATHER}]}

    def with_result(self, body: Json, call: Called, result: str) -> Json:
        return Chat().with_result(body, call, result)  # the same form

    def text(self, whole: Json) -> str:
        return "".join(block["text"] for block in whole["content"] if block["type"] == "text")

    def calls(self, whole: Json) -> list[Called]:
        blocks = [block for block in whole["content"] if block["type"] == "tool_use"]
        return [Called(block["id"], block["name"], block["input"]) for block in blocks]

    def tokens(self, whole: Json) -> tuple[int, int, int]:
        usage = whole["usage"]
        cached = usage["cache_read_input_tokens"]
        new = usage["input_tokens"] + usage["cache_creation_input_tokens"]
        return new + cached, cached, usage["output_tokens"]

    def assembled(self, events: Sequence[Event]) -> Json:
        assert all(event.json()["type"] == event.name for event in events)
        inside = [event.json() for event in events if event.name != "ping"]
        assert inside[0]["type"] == "message_start", inside[0]
        assert [event["type"] for event in inside[-2:]] == ["message_delta", "message_stop"], inside
        message: Json = inside[0]["message"]
        assert message["content"] == [] and message["stop_reason"] is None
        open_at: int | None = None
        pieces: list[list[str]] = []
        for event in inside[1:-2]:
            if event["type"] == "content_block_start":
                assert open_at is None and event["index"] == len(pieces), event
                open_at = event["index"]
                message["content"].append(event["content_block"])
                pieces.append([])
            elif event["type"] == "content_block_delta":
                assert event["index"] == open_at, event
                self._add(message["content"][-1], pieces[-1], event["delta"])
            else:
                assert event["type"] == "content_block_stop" and event["index"] == open_at, event
                open_at = None
        assert open_at is None
        for block, said in zip(message["content"], pieces, strict=True):
            if block["type"] == "tool_use":
                block["input"] = json.loads("".join(said) or "{}")
        return {**message, **inside[-2]["delta"], "usage": {**message["usage"], **inside[-2]["usage"]}}

    @staticmethod
    def _add(block: Json, pieces: list[str], delta: Json) -> None:
        kinds = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}
        kind = delta["type"]
        if kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "input_json_delta":
            assert block["type"] == kinds[kind]
            pieces.append(delta["partial_json"])
        else:
            assert block["type"] == kinds[kind], (block, delta)
            block[block["type"]] += delta[block["type"]]

    def heard(self, events: Sequence[Event]) -> str:
        deltas = [event.json()["delta"] for event in events if event.name == "content_block_delta"]
        return "".join(delta.get("text", "") for delta in deltas)

    def failure(self, events: Sequence[Event]) -> str | None:
        names = [event.name for event in events]
        if "error" not in names:
            return None
        assert names.index("error") == len(names) - 1, names
        assert not {"message_stop", "message_delta"} & set(names), names
        said = events[-1].json()
        assert said["type"] == "error" and said["error"]["type"], said
        return str(said["error"]["message"])

    def refusal(self, answer: Answer) -> tuple[str, str]:
        assert answer.headers["content-type"] == "application/json", answer
        said = answer.json()
        assert said["type"] == "error" and set(said["error"]) == {"type", "message"}, said
        return said["error"]["type"], said["error"]["message"]


class Completions(Client):
    """OpenAI's chat completions."""

    name, path = "completions", "/v1/chat/completions"

    def body(self, *turns: str, system: str = "", model: str = "local", **more: Any) -> Json:
        if more.get("stream"):
            more["stream_options"] = {"include_usage": True}
        return Chat().body(*turns, system=system, model=model, **more)

    def tools(self) -> Json:
        function = {"name": "weather", "description": "Looks it up", "parameters": WEATHER}
        return {"tools": [{"type": "function", "function": function}]}

    def with_result(self, body: Json, call: Called, result: str) -> Json:
        function = {"name": call.name, "arguments": json.dumps(call.input)}
        used = {"id": call.id, "type": "function", "function": function}
        more = [
            {"role": "assistant", "content": None, "tool_calls": [used]},
            {"role": "tool", "tool_call_id": call.id, "content": result},
        ]
        return {**body, "messages": [*body["messages"], *more]}

    def text(self, whole: Json) -> str:
        return whole["choices"][0]["message"]["content"] or ""

    def calls(self, whole: Json) -> list[Called]:
        calls = whole["choices"][0]["message"].get("tool_calls", [])
        assert all(call["type"] == "function" for call in calls)
        functions = [(call["id"], call["function"]) for call in calls]
        return [Called(id_, f["name"], json.loads(f["arguments"])) for id_, f in functions]

    def tokens(self, whole: Json) -> tuple[int, int, int]:
        usage = whole["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        return usage["prompt_tokens"], cached, usage["completion_tokens"]

    def assembled(self, events: Sequence[Event]) -> Json:
        assert events[-1].data == "[DONE]"
        chunks = [event.json() for event in events[:-1]]
        assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks)
        assert {chunk["id"] for chunk in chunks} == {chunks[0]["id"]}
        choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
        assert choices[0]["delta"]["role"] == "assistant"
        reasons = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
        assert len(reasons) == 1 and choices[-1]["finish_reason"] == reasons[0]
        message: Json = {"role": "assistant", "content": self.heard(events[:-1])}
        calls = self._calls([choice["delta"] for choice in choices])
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "finish_reason": reasons[0]}
        return {**chunks[0], "choices": [choice], "usage": chunks[-1].get("usage")}

    @staticmethod
    def _calls(deltas: list[Json]) -> list[Json]:
        calls: list[Json] = []
        for fragment in [f for delta in deltas for f in delta.get("tool_calls", ())]:
            if fragment["index"] == len(calls):
                calls.append({**fragment, "function": dict(fragment["function"])})
            else:
                assert fragment["index"] == len(calls) - 1, fragment
                calls[-1]["function"]["arguments"] += fragment["function"]["arguments"]
        return calls

    def heard(self, events: Sequence[Event]) -> str:
        choices = [choice for event in events if event.data != "[DONE]" for choice in event.json()["choices"]]
        return "".join(choice["delta"].get("content") or "" for choice in choices)

    def failure(self, events: Sequence[Event]) -> str | None:
        if not events or "error" not in events[-1].data or events[-1].data == "[DONE]":
            return None
        assert not any(event.data == "[DONE]" for event in events)
        said = events[-1].json()["error"]
        assert said["type"], said
        return str(said["message"])

    def refusal(self, answer: Answer) -> tuple[str, str]:
        assert answer.headers["content-type"] == "application/json", answer
        said = answer.json()
        assert set(said) == {"error"} and set(said["error"]) == {"message", "type", "param", "code"}, said
        return said["error"]["type"], said["error"]["message"]


class Responses(Client):
    """OpenAI's Responses."""

    name, path = "responses", "/v1/responses"

    def body(self, *turns: str, system: str = "", model: str = "local", **more: Any) -> Json:
        kinds = ("input_text", "output_text")
        items = [
            {
                "type": "message",
                "role": turn["role"],
                "content": [{"type": kinds[n % 2], "text": turn["content"]}],
            }
            for n, turn in enumerate(alternating(turns))
        ]
        about: Json = {"instructions": system} if system else {}
        if "max_tokens" in more:
            more["max_output_tokens"] = more.pop("max_tokens")
        return {"model": model, "input": items, **about, **more}

    def tools(self) -> Json:
        return {"tools": [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}]}

    def with_result(self, body: Json, call: Called, result: str) -> Json:
        about = {"type": "function_call", "call_id": call.id, "name": call.name}
        more = [
            {**about, "arguments": json.dumps(call.input)},
            {"type": "function_call_output", "call_id": call.id, "output": result},
        ]
        return {**body, "input": [*body["input"], *more]}

    def text(self, whole: Json) -> str:
        messages = [item for item in whole["output"] if item["type"] == "message"]
        return "".join(part["text"] for item in messages for part in item["content"])

    def calls(self, whole: Json) -> list[Called]:
        calls = [item for item in whole["output"] if item["type"] == "function_call"]
        return [Called(call["call_id"], call["name"], json.loads(call["arguments"])) for call in calls]

    def tokens(self, whole: Json) -> tuple[int, int, int]:
        usage = whole["usage"]
        cached = usage["input_tokens_details"]["cached_tokens"]
        return usage["input_tokens"], cached, usage["output_tokens"]

    def assembled(self, events: Sequence[Event]) -> Json:
        assert all(event.json()["type"] == event.name for event in events)
        assert events[0].name == "response.created" and events[-1].name == "response.completed"
        done = [event.json()["item"] for event in events if event.name == "response.output_item.done"]
        whole: Json = events[-1].json()["response"]
        assert whole["status"] == "completed" and whole["output"] == done
        assert self.text(whole) == self.heard(events)
        return whole

    def heard(self, events: Sequence[Event]) -> str:
        return "".join(e.json()["delta"] for e in events if e.name == "response.output_text.delta")

    def failure(self, events: Sequence[Event]) -> str | None:
        names = [event.name for event in events]
        if "response.failed" not in names:
            return None
        assert names.index("response.failed") == len(names) - 1 and "response.completed" not in names, names
        said = events[-1].json()["response"]
        assert said["status"] == "failed" and said["error"]["code"], said
        return str(said["error"]["message"])

    def refusal(self, answer: Answer) -> tuple[str, str]:
        return Completions().refusal(answer)  # the same form


CHAT, MESSAGES, COMPLETIONS, RESPONSES = Chat(), Messages(), Completions(), Responses()
CLIENTS: tuple[Client, ...] = (CHAT, MESSAGES, COMPLETIONS, RESPONSES)
