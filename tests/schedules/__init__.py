"""Search threads in every order that few preemptions allow: `python -m tests.schedules`. See scheduler.py."""
