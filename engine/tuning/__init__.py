"""`yomi net tune`: which way to search with a network is the fastest on this machine. Begin reading in `tuner`."""
