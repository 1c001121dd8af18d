"""Evaluators: they compute policy logits and values for batches of leaves."""
