"""The `anthropic` package, as people use it, against a real llama.cpp."""

import anthropic
import pytest
from anthropic.types import Message, MessageParam, TextBlockParam, ToolParam
from gateway import GatewayProcess
from wire import call

ASSISTANT = "You are a short-spoken assistant who keeps to facts about animals and the weather of cities."
COLD = {"temperature": 0}  # the package no longer has a parameter for it
# A call in the history, which even this model takes for a pattern
HISTORY: list[MessageParam] = [
    {"role": "user", "content": "Weather in Rome?"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]},
    {"role": "assistant", "content": "It is sunny in Rome."},
    {"role": "user", "content": "Weather in Paris?"},
]


def tool(name: str) -> ToolParam:
    city = {"type": "string", "maxLength": 12}
    schema: dict[str, object] = {"type": "object", "properties": {"city": city}, "required": ["city"]}
    return {"name": name, "description": f"{name} of a city", "input_schema": schema}


def said(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def prompt_tokens(message: Message) -> int:
    usage = message.usage
    assert usage.cache_creation_input_tokens is not None and usage.cache_read_input_tokens is not None
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def test_an_answer_comes_whole_or_as_a_stream(claude: anthropic.Anthropic) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": "Name three animals."}]
    whole = claude.messages.create(model="any", max_tokens=12, messages=asked, extra_body=COLD)
    assert whole.role == "assistant" and said(whole) and whole.usage.output_tokens == 12
    assert whole.stop_reason == "max_tokens" and whole.model == "any"
    assert str(whole._request_id).startswith("req_")
    with claude.messages.stream(model="any", max_tokens=12, messages=asked, extra_body=COLD) as stream:
        pieces = list(stream.text_stream)
        streamed = stream.get_final_message()
    assert len(pieces) > 1 and "".join(pieces) == said(streamed) == said(whole)
    assert streamed.stop_reason == "max_tokens" and streamed.usage.output_tokens == 12
    assert prompt_tokens(streamed) == prompt_tokens(whole)


def test_the_second_turn_finds_all_of_the_first_in_its_slot(claude: anthropic.Anthropic) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": "Which animal barks?"}]
    first = claude.messages.with_raw_response.create(
        model="any", max_tokens=12, system=ASSISTANT, messages=asked
    )
    answer = first.parse()
    asked += [
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": "And which one purrs?"},
    ]
    second = claude.messages.with_raw_response.create(
        model="any", max_tokens=4, system=ASSISTANT, messages=asked
    )
    assert second.headers["x-herdr-slot"] == first.headers["x-herdr-slot"]
    held = prompt_tokens(answer) + answer.usage.output_tokens - 1  # the last token was never evaluated
    assert (second.parse().usage.cache_read_input_tokens or 0) >= held


def test_what_claude_code_changes_in_each_turn_costs_no_prefix(claude: anthropic.Anthropic) -> None:
    """Its billing line, its cache markers, and a system message in the middle whose form changes."""

    def system(turn: int) -> list[TextBlockParam]:
        billing = f"x-anthropic-billing-header: cc_version=2.1.{turn}.b7f; cc_entrypoint=cli; cch=a{turn}b1f;"
        marked: TextBlockParam = {"type": "text", "text": ASSISTANT, "cache_control": {"type": "ephemeral"}}
        plain: TextBlockParam = {"type": "text", "text": ASSISTANT}
        return [{"type": "text", "text": billing}, marked if turn % 2 else plain]

    note = "The user works in the folder /home/kim/zoo, and it is Monday."
    marked: TextBlockParam = {"type": "text", "text": note, "cache_control": {"type": "ephemeral"}}
    asked: list[MessageParam] = [
        {"role": "user", "content": [{"type": "text", "text": "Which animal moos?"}]},
        {"role": "system", "content": [marked]},
    ]
    first = claude.messages.create(model="claude-opus-5-5", max_tokens=8, system=system(1), messages=asked)
    asked[0] = {"role": "user", "content": "Which animal moos?"}
    asked[1] = {"role": "system", "content": note}
    asked += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": "And which one neighs?"},
    ]
    second = claude.messages.create(model="claude-opus-5-5", max_tokens=4, system=system(2), messages=asked)
    held = prompt_tokens(first) + first.usage.output_tokens - 1
    assert (second.usage.cache_read_input_tokens or 0) >= held


def test_a_tool_is_called_and_its_result_continues_the_slot(claude: anthropic.Anthropic) -> None:
    tools = [tool("weather"), tool("clock")]
    first = claude.messages.create(
        model="any",
        max_tokens=60,
        tools=tools,
        tool_choice={"type": "any"},
        messages=HISTORY,
        extra_body=COLD,
    )
    assert first.stop_reason == "tool_use"
    (use,) = [block for block in first.content if block.type == "tool_use"]
    assert use.name == "weather" and use.input == {"city": "Paris"}
    turn: list[MessageParam] = [
        {"role": "assistant", "content": first.content},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": use.id, "content": [{"type": "text", "text": "rain"}]}
            ],
        },
    ]
    with claude.messages.stream(
        model="any", max_tokens=12, tools=tools, messages=[*HISTORY, *turn], extra_body=COLD
    ) as stream:
        second = stream.get_final_message()
    assert said(second)
    assert (second.usage.cache_read_input_tokens or 0) >= prompt_tokens(first) - 1


def test_an_answer_cannot_get_around_a_tool_that_must_be_called(claude: anthropic.Anthropic) -> None:
    asked: list[MessageParam] = [*HISTORY[:-1], {"role": "user", "content": "Thank you!"}]
    tools = [tool("weather"), tool("clock")]
    free = claude.messages.create(model="any", max_tokens=20, tools=tools, messages=asked, extra_body=COLD)
    assert free.stop_reason == "end_turn"
    bound = claude.messages.create(
        model="any", max_tokens=20, tools=tools, tool_choice={"type": "any"}, messages=asked, extra_body=COLD
    )
    assert bound.stop_reason in ("max_tokens", "tool_use")  # llama.cpp lets it talk before it calls


def test_a_named_tool_is_called_in_a_stream(claude: anthropic.Anthropic) -> None:
    """The model would rather go on with the weather: llama.cpp's grammar keeps it from that."""
    with claude.messages.stream(
        model="any",
        max_tokens=60,
        tools=[tool("weather"), tool("clock")],
        tool_choice={"type": "tool", "name": "clock"},
        messages=HISTORY,
        extra_body=COLD,
    ) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_message()
    assert "input_json" in kinds
    (use,) = [block for block in message.content if block.type == "tool_use"]
    assert use.name == "clock" and list(use.input) == ["city"]
    assert message.stop_reason == "tool_use"


def test_a_stop_sequence_is_named(claude: anthropic.Anthropic) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": "Count: one, two, three"}]
    whole = claude.messages.create(model="any", max_tokens=16, messages=asked, extra_body=COLD)
    word = said(whole).split()[4]
    stopped = claude.messages.create(
        model="any", max_tokens=16, messages=asked, stop_sequences=["never said", word], extra_body=COLD
    )
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", word)
    assert said(stopped) == said(whole).partition(word)[0]


def test_tokens_are_counted_as_the_model_counts_them(claude: anthropic.Anthropic) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": "Größe? 你好 🐕"}]
    tools = [tool("weather")]
    counted = claude.messages.count_tokens(model="any", system=ASSISTANT, tools=tools, messages=asked)
    answer = claude.messages.create(model="any", max_tokens=1, system=ASSISTANT, tools=tools, messages=asked)
    assert counted.input_tokens == prompt_tokens(answer)


def test_a_prompt_past_the_slot_is_refused_so_that_claude_code_compacts(claude: anthropic.Anthropic) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": "cat dog " * 1000}]
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: 2\d\d\d tokens > 1024 maximum"):
        claude.messages.create(model="any", max_tokens=4, messages=asked)


def test_an_image_is_refused_in_words_but_does_not_end_a_conversation(claude: anthropic.Anthropic) -> None:
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    asked: list[MessageParam] = [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": dot}},
                {"type": "text", "text": "What is this?"},
            ],
        }
    ]
    with pytest.raises(anthropic.BadRequestError, match="cannot see images"):
        claude.messages.create(model="any", max_tokens=4, messages=asked)
    asked += [{"role": "assistant", "content": "No idea."}, {"role": "user", "content": "Never mind."}]
    assert said(claude.messages.create(model="any", max_tokens=4, messages=asked))


def test_models_are_listed(claude: anthropic.Anthropic) -> None:
    assert [model.id for model in claude.models.list()] == ["local"]


def test_the_record_of_a_call_says_what_was_cached(claude: anthropic.Anthropic, real: GatewayProcess) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": "Name two birds."}]
    answers = [claude.messages.create(model="any", max_tokens=2, messages=asked) for _ in range(2)]
    agent = "test_the_record_of_a_call_says_what_was_cached"
    rows = call(real, "GET", f"/v1/calls?agent={agent}").json()["calls"]
    assert [row["prompt_tokens"] for row in rows] == [prompt_tokens(answer) for answer in reversed(answers)]
    assert rows[0]["cached_tokens"] == prompt_tokens(answers[1]) - 1 > rows[1]["cached_tokens"]
    assert {row["slot"] for row in rows} == {rows[0]["slot"]} and {row["agent"] for row in rows} == {agent}
