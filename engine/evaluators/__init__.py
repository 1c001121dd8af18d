"""Evaluators: what judges a batch of leaves. Tensors in, policy logits and values out."""
