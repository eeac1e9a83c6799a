"""Measures of the model pool: through the gateway, and the same model server called directly."""
