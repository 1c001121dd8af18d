"""Training data from game records: reading, choosing, labelling and writing positions (see yomi.nets.data)."""
