"""Evaluators of Go: KataGo's networks and rollouts."""
