"""Evaluators compute policy logits and values for a batch of leaves."""
