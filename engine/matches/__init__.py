"""Matches between engines: games, schedules, journals, ratings. `runner` puts them together."""
