// From bits to the inputs of a network. Bit i of a row (bit i % 32 of word i / 32) becomes `repeat` equal numbers: 1 for
// planes, the board's points for an input whose channels are constant over the board. The slow twin is numpy.unpackbits.
// A grid has the rows in y and the numbers of a row in x.

template <typename T>
__device__ void unpack(const unsigned *packed, T *numbers, int words, int bits, int repeat, T one) {
    const int width = bits * repeat;
    const unsigned *row = packed + static_cast<long long>(blockIdx.y) * words;
    T *target = numbers + static_cast<long long>(blockIdx.y) * width;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < width; i += gridDim.x * blockDim.x) {
        const int bit = i / repeat;
        target[i] = (row[bit / 32] >> (bit % 32)) & 1u ? one : T(0);
    }
}

extern "C" __global__ void unpack_float32(const unsigned *packed, float *numbers, int words, int bits, int repeat) {
    unpack<float>(packed, numbers, words, bits, repeat, 1.0f);
}

// Half precision as its bits: 0x3C00 is 1.
extern "C" __global__ void unpack_float16(const unsigned *packed, unsigned short *numbers, int words, int bits, int repeat) {
    unpack<unsigned short>(packed, numbers, words, bits, repeat, 0x3C00);
}
