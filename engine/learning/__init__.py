"""Learning from self-play. Begin reading at `engine.learning.loop`, which is the algorithm."""
