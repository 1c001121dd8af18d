"""Learning from self-play. Start reading at `yomi.engine.learning.loop`."""
