"""Pure: what a message says, as OpenAI's clients write it: a string, or a list of typed parts."""

import re

import msgspec

from herdr.pool.protocols.reading import missing_field, refuse, shown
from herdr.pool.request import Image, Text

# Placeholders are part of the prompt: whoever changes one makes every prefix with it cold.
AUDIO_LEFT_OUT = "[An audio clip was left out: audio cannot be passed on to the model.]"
FILE_LEFT_OUT = "[A file was left out: files cannot be passed on to the model.]"
IMAGE_LEFT_OUT = "[An image was left out: it came neither as data nor with an address.]"

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.ASCII | re.IGNORECASE)


class ImageUrl(msgspec.Struct):
    """Where an image is, or the image itself as a `data:` URL."""

    url: str


class ContentPart(msgspec.Struct):
    """One part of a message, of either API; `type` says which of the fields count."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | str | None = None
    filename: str | None = None


Content = str | list[ContentPart | str] | None


def parts_of(content: Content, at: str, *, keep_unknown: bool = False) -> tuple[Text | Image, ...]:
    """Return the parts of a message that say something; empty text says nothing.

    A part of unknown type is refused, or becomes a line of text with `keep_unknown`.
    """
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(content),)
    parts = [
        Text(part) if isinstance(part, str) else _part(part, f"{at}[{i}]", keep_unknown)
        for i, part in enumerate(content)
    ]
    return tuple([part for part in parts if part != Text("")])


def image_at(url: str) -> Image:
    """Return the image that a URL names, taken apart when it is a base64 `data:` URL."""
    data = _DATA_URL.match(url)
    return Image(url=url) if data is None else Image(media_type=data[1].lower(), data=url[data.end() :])


def _part(part: ContentPart, at: str, keep_unknown: bool) -> Text | Image:
    match part.type:
        case "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text":
            return Text(_required(part.text, f"{at}.text"))
        case "refusal":
            return Text(_required(part.refusal, f"{at}.refusal"))
        case "image_url":
            return _image(part, f"{at}.image_url")
        case "input_image":
            return _image(part, at) if part.image_url is not None else Text(IMAGE_LEFT_OUT)
        case "input_audio":
            return Text(AUDIO_LEFT_OUT)
        case "file" | "input_file":
            return Text(FILE_LEFT_OUT)
    if not keep_unknown:
        raise refuse(f"{at}.type", f"Unknown content type {shown(part.type)}; send text or image_url.")
    return Text(part.text or f"[Content of the type {part.type} was left out.]")


def _required(value: str | None, at: str) -> str:
    if value is None:
        raise missing_field(at)
    return value


def _image(part: ContentPart, at: str) -> Image:
    if part.image_url is None:
        raise missing_field(at)
    return image_at(part.image_url if isinstance(part.image_url, str) else part.image_url.url)
