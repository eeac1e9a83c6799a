"""Tasks that are handed from one role to the next: pure decisions over them."""
