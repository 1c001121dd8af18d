"""The forward pass of networks on the CPU, in floats or 16-bit integers, in kernels of our own."""
