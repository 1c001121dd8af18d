"""The forward pass of networks on the CPU, in float32, bfloat16 or integers."""
