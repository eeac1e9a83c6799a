"""What a message counts for."""

from herdr.context.histories import MESSAGE_OVERHEAD, Message, size_of


def test_a_message_counts_with_its_extras_and_its_row():
    message = Message(
        session="s",
        workspace="w",
        seq=1,
        id="i",
        role="user",
        source="x",
        time_us=1,
        body=b"1234",
        about=b"56",
    )
    assert size_of(message) == MESSAGE_OVERHEAD + 6
