"""The forward pass of convolutional networks on the CPU, float32, in kernels of our own."""
