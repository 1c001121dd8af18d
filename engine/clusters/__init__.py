"""Runs on several machines: their units, tasks, and actors on a Ray cluster."""
