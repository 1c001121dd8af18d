"""Matches between engines. Start reading at `yomi.engine.matches.runner`."""
