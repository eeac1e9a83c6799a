from herdr.pool.protocols.backend.tokens import IMAGE_BYTES, MESSAGE_BYTES, estimate_tokens
from herdr.pool.request import ChatRequest, Image, Message, Text, Thinking, Tool, ToolResult, ToolUse


def bytes_of(*parts: object, tools: tuple[Tool, ...] = ()) -> float:
    request = ChatRequest("m", (Message("user", parts),), tools)  # type: ignore[arg-type]
    return estimate_tokens(request) * 2.7 - MESSAGE_BYTES


def test_an_estimate_is_the_bytes_of_the_text_over_2_7_rounded_up() -> None:
    assert estimate_tokens(ChatRequest("m", (Message("user", (Text("x" * (270 - MESSAGE_BYTES)),)),))) == 100
    assert estimate_tokens(ChatRequest("m", (Message("user", (Text("x" * (271 - MESSAGE_BYTES)),)),))) == 101
    assert estimate_tokens(ChatRequest("m", ())) == 1


def test_all_that_reaches_the_prompt_counts() -> None:
    assert bytes_of(Text("渐" * 900)) >= 2700
    assert bytes_of(Thinking("x" * 900)) >= 900
    assert bytes_of(ToolUse("a", "f" * 100, "x" * 900)) >= 1000
    assert bytes_of(ToolResult("a", (Text("x" * 900), Text("y" * 900)))) >= 1800
    assert bytes_of(tools=(Tool("f" * 100, "d" * 900, "{" + " " * 900 + "}"),)) >= 1900


def test_an_image_counts_by_what_an_encoder_makes_of_it_not_by_its_size() -> None:
    assert bytes_of(Image("image/png", "A" * 1_000_000)) <= IMAGE_BYTES + 3
