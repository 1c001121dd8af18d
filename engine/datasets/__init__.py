"""Training data from game records: reading, choosing, labelling, and writing positions as `nets.data` keeps them."""
