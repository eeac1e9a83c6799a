"""The model pool: many agents on a few KV slots of a model server, each with its own warm prefix."""
