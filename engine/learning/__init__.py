"""Learning from self-play. Begin reading at `yomi.engine.learning.loop`, which is the algorithm."""
