"""Matches between engines: engine processes, games, schedules, journals, ratings. `runner` puts them together."""
