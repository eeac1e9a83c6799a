import json

from herdr.pool.protocols.openai.models import models_body


def test_the_list_suits_both_kinds_of_clients() -> None:
    listed = json.loads(models_body(["big", "small"], 1_700_000_000))
    assert listed == {
        "object": "list",
        "has_more": False,
        "first_id": "big",
        "last_id": "small",
        "data": [
            {
                "id": name,
                "object": "model",
                "type": "model",
                "display_name": name,
                "created": 1_700_000_000,
                "created_at": "2023-11-14T22:13:20.000Z",
                "owned_by": "herdr",
            }
            for name in ("big", "small")
        ],
    }


def test_no_models_is_an_empty_page() -> None:
    listed = json.loads(models_body([], 0))
    assert (listed["data"], listed["first_id"], listed["last_id"]) == ([], None, None)
