"""The `openai` package, as people use it, against a real llama.cpp: chat completions, responses, models."""

import json
from typing import cast

import openai
import pytest
from openai.types.chat import (
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageParam,
)
from openai.types.responses import FunctionToolParam, Response, ResponseFunctionToolCall, ResponseInputParam

CITY = {"type": "string", "maxLength": 12}
SCHEMA = {"type": "object", "properties": {"city": CITY}, "required": ["city"], "additionalProperties": False}
TOOLS: list[ChatCompletionFunctionToolParam] = [
    {"type": "function", "function": {"name": name, "description": f"{name} of a city", "parameters": SCHEMA}}
    for name in ("weather", "clock")
]
FUNCTIONS: list[FunctionToolParam] = [
    {
        "type": "function",
        "name": name,
        "description": f"{name} of a city",
        "parameters": SCHEMA,
        "strict": False,
    }
    for name in ("weather", "clock")
]
# Calls in the history, which even this model takes for a pattern
HISTORY: ResponseInputParam = [
    {"role": "user", "content": "Weather in Rome?"},
    {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Rome"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
    {"role": "assistant", "content": "It is sunny in Rome."},
    {"role": "user", "content": "Weather in Paris?"},
]


def calls(*cities: str) -> ChatCompletionMessageParam:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{city}",
                "type": "function",
                "function": {"name": "weather", "arguments": json.dumps({"city": city})},
            }
            for city in cities
        ],
    }


def result(city: str, weather: str) -> ChatCompletionMessageParam:
    return {"role": "tool", "tool_call_id": f"call_{city}", "content": weather}


def cached(response: Response) -> int:
    assert response.usage is not None
    return response.usage.input_tokens_details.cached_tokens


def test_a_completion_comes_whole_or_as_a_stream(gpt: openai.OpenAI) -> None:
    asked: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Name three animals."}]
    whole = gpt.chat.completions.create(model="any", max_tokens=12, temperature=0, messages=asked)
    (choice,) = whole.choices
    assert choice.message.content and choice.finish_reason == "length" and whole.model == "any"
    stream = gpt.chat.completions.create(
        model="any",
        max_tokens=12,
        temperature=0,
        messages=asked,
        stream=True,
        stream_options={"include_usage": True},
    )
    *chunks, last = stream
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == choice.message.content
    assert chunks[-1].choices[0].finish_reason == "length"
    assert last.choices == [] and last.usage is not None and whole.usage is not None
    assert last.usage.completion_tokens == whole.usage.completion_tokens == 12
    assert last.usage.prompt_tokens == whole.usage.prompt_tokens


def test_the_second_turn_of_a_chat_finds_the_first_in_its_slot(gpt: openai.OpenAI) -> None:
    asked: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "You are a short-spoken assistant who keeps to facts about animals."},
        {"role": "user", "content": "Which animal barks?"},
    ]
    first = gpt.chat.completions.with_raw_response.create(model="any", max_tokens=12, messages=asked)
    answer = first.parse()
    asked += [
        {"role": "assistant", "content": answer.choices[0].message.content},
        {"role": "user", "content": "And which one purrs?"},
    ]
    second = gpt.chat.completions.with_raw_response.create(model="any", max_tokens=4, messages=asked)
    assert second.headers["x-herdr-slot"] == first.headers["x-herdr-slot"]
    held, usage = answer.usage, second.parse().usage
    assert held is not None and usage is not None and usage.prompt_tokens_details is not None
    assert (usage.prompt_tokens_details.cached_tokens or 0) >= held.total_tokens - 1


def test_tools_are_called_at_once_and_their_results_continue_the_slot(gpt: openai.OpenAI) -> None:
    asked: list[ChatCompletionMessageParam] = []
    for one, other in (("Rome", "Oslo"), ("Lima", "Kyiv")):
        asked += [
            {"role": "user", "content": f"Weather in {one} and {other}?"},
            calls(one, other),
            result(one, "sunny"),
            result(other, "snow"),
            {"role": "assistant", "content": "Sunny and snow."},
        ]
    asked.append({"role": "user", "content": "Weather in Paris and Berlin?"})
    first = gpt.chat.completions.create(
        model="any",
        max_tokens=80,
        temperature=0,
        tools=TOOLS,
        tool_choice="required",
        parallel_tool_calls=True,
        messages=asked,
    )
    (choice,) = first.choices
    assert choice.finish_reason == "tool_calls" and choice.message.tool_calls and first.usage is not None
    made = [c for c in choice.message.tool_calls if isinstance(c, ChatCompletionMessageFunctionToolCall)]
    assert [(c.function.name, json.loads(c.function.arguments)) for c in made] == [
        ("weather", {"city": "Paris"}),
        ("weather", {"city": "Berlin"}),
    ]
    assert len({c.id for c in made}) == 2
    asked.append(cast(ChatCompletionMessageParam, choice.message.model_dump(exclude_none=True)))
    asked += [{"role": "tool", "tool_call_id": one.id, "content": "rain"} for one in made]
    second = gpt.chat.completions.create(
        model="any", max_tokens=4, temperature=0, tools=TOOLS, messages=asked
    )
    assert second.usage is not None and second.usage.prompt_tokens_details is not None
    assert (second.usage.prompt_tokens_details.cached_tokens or 0) >= first.usage.prompt_tokens - 1


def test_a_named_function_is_called_in_a_stream(gpt: openai.OpenAI) -> None:
    """The model would rather go on with the weather: llama.cpp's grammar keeps it from that."""
    asked: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "Weather in Rome?"},
        calls("Rome"),
        result("Rome", "sunny"),
        {"role": "assistant", "content": "It is sunny in Rome."},
        {"role": "user", "content": "Weather in Paris?"},
    ]
    with gpt.chat.completions.stream(
        model="any",
        max_tokens=60,
        temperature=0,
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "clock"}},
        messages=asked,
    ) as stream:
        kinds = [event.type for event in stream]
        (choice,) = stream.get_final_completion().choices
    assert "tool_calls.function.arguments.done" in kinds
    assert choice.finish_reason == "tool_calls" and choice.message.tool_calls
    (made,) = choice.message.tool_calls
    assert made.function.name == "clock" and list(json.loads(made.function.arguments)) == ["city"]


def test_an_answer_keeps_to_a_json_schema(gpt: openai.OpenAI) -> None:
    answer = gpt.chat.completions.create(
        model="any",
        max_tokens=80,
        temperature=0,
        messages=[{"role": "user", "content": "Name a city in Italy."}],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "place", "schema": SCHEMA, "strict": True},
        },
    )
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    assert list(json.loads(choice.message.content or "")) == ["city"]


def test_a_prompt_past_the_slot_is_refused(gpt: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="1024") as refused:
        gpt.chat.completions.create(
            model="any", max_tokens=4, messages=[{"role": "user", "content": "cat dog " * 1000}]
        )
    assert refused.value.code == "context_length_exceeded"


def test_a_response_comes_whole_or_as_a_stream(gpt: openai.OpenAI) -> None:
    whole = gpt.responses.create(
        model="any", instructions="Be brief.", input="Name three birds.", max_output_tokens=12, temperature=0
    )
    assert whole.output_text and whole.status == "incomplete" and whole.usage is not None
    assert whole.usage.output_tokens == 12
    *events, last = gpt.responses.create(
        model="any",
        instructions="Be brief.",
        input="Name three birds.",
        max_output_tokens=12,
        temperature=0,
        stream=True,
    )
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(pieces) > 1 and "".join(pieces) == whole.output_text
    assert last.type == "response.incomplete" and last.response.usage is not None
    assert last.response.usage.input_tokens == whole.usage.input_tokens


def test_a_response_in_json_is_streamed_to_its_end(gpt: openai.OpenAI) -> None:
    with gpt.responses.stream(
        model="any",
        input="Name a city in Italy.",
        max_output_tokens=80,
        temperature=0,
        text={"format": {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}},
    ) as stream:
        final = stream.get_final_response()
    assert final.status == "completed" and list(json.loads(final.output_text)) == ["city"]


def test_a_response_calls_a_function_and_goes_on_in_its_slot(gpt: openai.OpenAI) -> None:
    first = gpt.responses.create(
        model="any",
        input=HISTORY,
        tools=FUNCTIONS,
        tool_choice="required",
        store=False,
        max_output_tokens=60,
        temperature=0,
    )
    (made,) = [item for item in first.output if isinstance(item, ResponseFunctionToolCall)]
    assert (made.name, json.loads(made.arguments)) == ("weather", {"city": "Paris"})
    more: ResponseInputParam = [
        {"type": "function_call", "call_id": made.call_id, "name": made.name, "arguments": made.arguments},
        {"type": "function_call_output", "call_id": made.call_id, "output": "rain"},
    ]
    second = gpt.responses.create(
        model="any",
        input=[*HISTORY, *more],
        tools=FUNCTIONS,
        store=False,
        max_output_tokens=12,
        temperature=0,
    )
    assert second.output_text and first.usage is not None
    assert cached(second) >= first.usage.input_tokens - 1


def test_models_are_listed(gpt: openai.OpenAI) -> None:
    assert [model.id for model in gpt.models.list()] == ["local"]
