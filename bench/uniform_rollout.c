/* The C twin of native/go/rollout.py: the same board, the same rollout policy, the same random numbers.

   bench/rollouts.py compiles this with gcc -O3 -march=native and compares the speed. Given the same seed and the same
   number of rollouts both sides return the same sum of balances, which proves that they do the same work. Names and
   order follow native/go/board.py; read the comments there. */

#include <stdint.h>
#include <string.h>

#define EMPTY 0
#define BLACK 1
#define BORDER 3
#define NO_POINT 0
#define MAX_POINTS 424
#define MAX_CHAINS 368
#define WORDS 7

typedef struct {
    uint64_t hash;
    int32_t size, stride, words, empty_count;
    uint8_t side_to_move;
    uint16_t simple_ko;
    int32_t prisoners[4];
    uint8_t color[MAX_POINTS];
    uint16_t chain[MAX_POINTS];
    uint16_t next_stone[MAX_POINTS];
    uint16_t empty_index[MAX_POINTS];
    uint16_t empties[MAX_POINTS];
    uint64_t occupied[WORDS];
    uint64_t slots[6];
    uint16_t liberties[MAX_CHAINS];
    uint16_t stones[MAX_CHAINS];
    uint64_t liberty_bits[MAX_CHAINS * WORDS];
} Position;

static uint64_t zobrist[4][MAX_POINTS];

static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (x * 0x2545F4914F6CDD1DULL) >> 32;
}

static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
    return (random_bits(state) * n) >> 32;
}

static void clear(Position *pos, int size)
{
    memset(pos, 0, sizeof *pos);
    pos->size = size;
    pos->stride = size + 1;
    pos->words = ((size + 2) * pos->stride + 1 + 63) / 64;
    pos->side_to_move = BLACK;
    memset(pos->color, BORDER, sizeof pos->color);
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            int p = (y + 1) * pos->stride + x + 1;
            pos->color[p] = EMPTY;
            pos->empties[pos->empty_count] = (uint16_t)p;
            pos->empty_index[p] = (uint16_t)pos->empty_count;
            pos->empty_count++;
        }
}

static void copy(Position *target, const Position *source)
{
    target->hash = source->hash;
    target->size = source->size;
    target->stride = source->stride;
    target->words = source->words;
    target->empty_count = source->empty_count;
    target->side_to_move = source->side_to_move;
    target->simple_ko = source->simple_ko;
    memcpy(target->prisoners, source->prisoners, sizeof target->prisoners);
    size_t points = (size_t)((source->size + 2) * source->stride + 1);
    memcpy(target->color, source->color, points);
    memcpy(target->chain, source->chain, 2 * points);
    memcpy(target->next_stone, source->next_stone, 2 * points);
    memcpy(target->empty_index, source->empty_index, 2 * points);
    memcpy(target->empties, source->empties, 2 * (size_t)source->empty_count);
    memcpy(target->occupied, source->occupied, 8 * (size_t)source->words);
    size_t top = 0;
    for (size_t w = 0; w < 6; w++) {
        target->slots[w] = source->slots[w];
        if (source->slots[w])
            top = (w + 1) * 64;
    }
    if (top > MAX_CHAINS)
        top = MAX_CHAINS;
    memcpy(target->liberties, source->liberties, 2 * top);
    memcpy(target->stones, source->stones, 2 * top);
    memcpy(target->liberty_bits, source->liberty_bits, 8 * top * (size_t)source->words);
}

static inline void add_liberty(Position *pos, uint64_t slot, uint64_t p)
{
    uint64_t index = slot * (uint64_t)pos->words + (p >> 6);
    uint64_t old = pos->liberty_bits[index], bit = 1ULL << (p & 63);
    pos->liberty_bits[index] = old | bit;
    if (!(old & bit))
        pos->liberties[slot]++;
}

static inline void drop_liberty(Position *pos, uint64_t slot, uint64_t p)
{
    uint64_t index = slot * (uint64_t)pos->words + (p >> 6);
    uint64_t old = pos->liberty_bits[index], bit = 1ULL << (p & 63);
    pos->liberty_bits[index] = old & ~bit;
    if (old & bit)
        pos->liberties[slot]--;
}

static inline uint64_t new_slot(Position *pos)
{
    uint64_t w = 0;
    while (~pos->slots[w] == 0)
        w++;
    uint64_t bit = (uint64_t)__builtin_ctzll(~pos->slots[w]);
    pos->slots[w] |= 1ULL << bit;
    uint64_t slot = w * 64 + bit;
    pos->liberties[slot] = 0;
    pos->stones[slot] = 0;
    for (uint64_t i = 0; i < (uint64_t)pos->words; i++)
        pos->liberty_bits[slot * (uint64_t)pos->words + i] = 0;
    return slot;
}

static inline void merge(Position *pos, uint64_t target, uint64_t source, uint64_t stone)
{
    uint64_t p = stone;
    do {
        pos->chain[p] = (uint16_t)target;
        p = pos->next_stone[p];
    } while (p != stone);
    uint64_t words = (uint64_t)pos->words, count = 0;
    for (uint64_t i = 0; i < words; i++) {
        uint64_t joined = pos->liberty_bits[target * words + i] | pos->liberty_bits[source * words + i];
        pos->liberty_bits[target * words + i] = joined;
        count += (uint64_t)__builtin_popcountll(joined);
    }
    pos->liberties[target] = (uint16_t)count;
    pos->stones[target] = (uint16_t)(pos->stones[target] + pos->stones[source]);
    pos->slots[source >> 6] &= ~(1ULL << (source & 63));
}

static inline int remove_chain(Position *pos, uint64_t stone)
{
    uint64_t slot = pos->chain[stone], color = pos->color[stone], enemy = 3 - color, p = stone;
    const int64_t stride = pos->stride;
    int count = 0;
    do {
        pos->color[p] = EMPTY;
        pos->hash ^= zobrist[color][p];
        pos->empties[pos->empty_count] = (uint16_t)p;
        pos->empty_index[p] = (uint16_t)pos->empty_count;
        pos->empty_count++;
        count++;
        const int64_t neighbors[4] = {(int64_t)p - 1, (int64_t)p + 1, (int64_t)p - stride, (int64_t)p + stride};
        for (int k = 0; k < 4; k++)
            if (pos->color[neighbors[k]] == enemy)
                add_liberty(pos, pos->chain[neighbors[k]], p);
        p = pos->next_stone[p];
    } while (p != stone);
    pos->slots[slot >> 6] &= ~(1ULL << (slot & 63));
    return count;
}

static int place_stone(Position *pos, uint64_t p, uint64_t own)
{
    const int64_t i = (int64_t)p, stride = pos->stride;
    const uint64_t enemy = 3 - own;
    const int64_t neighbors[4] = {i - 1, i + 1, i - stride, i + stride};

    pos->color[p] = (uint8_t)own;
    pos->hash ^= zobrist[own][p];
    pos->occupied[p >> 6] |= 1ULL << (p & 63);
    uint16_t moved = pos->empties[pos->empty_count - 1], hole = pos->empty_index[p];
    pos->empties[hole] = moved;
    pos->empty_index[moved] = hole;
    pos->empty_count--;

    uint64_t slot = MAX_CHAINS;
    for (int k = 0; k < 4; k++) {
        int64_t q = neighbors[k];
        if (pos->color[q] != own)
            continue;
        uint64_t other = pos->chain[q];
        if (slot == MAX_CHAINS) {
            slot = other;
            pos->next_stone[p] = pos->next_stone[q];
            pos->next_stone[q] = (uint16_t)p;
        } else if (other != slot) {
            if (pos->stones[other] > pos->stones[slot]) {
                merge(pos, other, slot, p);
                slot = other;
            } else
                merge(pos, slot, other, (uint64_t)q);
            uint16_t ring = pos->next_stone[p];
            pos->next_stone[p] = pos->next_stone[q];
            pos->next_stone[q] = ring;
        }
    }
    if (slot == MAX_CHAINS) {
        slot = new_slot(pos);
        pos->next_stone[p] = (uint16_t)p;
    } else
        drop_liberty(pos, slot, p);
    pos->chain[p] = (uint16_t)slot;
    pos->stones[slot]++;

    int captured = 0;
    uint64_t captured_point = NO_POINT;
    for (int k = 0; k < 4; k++) {
        uint64_t q = (uint64_t)neighbors[k], c = pos->color[q];
        if (c == EMPTY)
            add_liberty(pos, slot, q);
        else if (c == enemy) {
            uint64_t other = pos->chain[q];
            drop_liberty(pos, other, p);
            if (pos->liberties[other] == 0) {
                captured += remove_chain(pos, q);
                captured_point = q;
            }
        }
    }
    pos->prisoners[enemy] += captured;

    pos->simple_ko = NO_POINT;
    if (captured == 1 && pos->stones[slot] == 1 && pos->liberties[slot] == 1)
        pos->simple_ko = (uint16_t)captured_point;
    else if (pos->liberties[slot] == 0)
        pos->prisoners[own] += remove_chain(pos, p);
    return captured;
}

static inline int is_suicide(const Position *pos, uint64_t point, uint64_t color)
{
    const int64_t i = (int64_t)point, stride = pos->stride;
    const int64_t neighbors[4] = {i - 1, i + 1, i - stride, i + stride};
    for (int k = 0; k < 4; k++) {
        uint64_t c = pos->color[neighbors[k]];
        if (c == EMPTY)
            return 0;
        if (c != BORDER) {
            int one = pos->liberties[pos->chain[neighbors[k]]] == 1;
            if ((c == color) != one)
                return 0;
        }
    }
    return 1;
}

static inline int is_eye(const Position *pos, uint64_t point, uint64_t color)
{
    const int64_t i = (int64_t)point, stride = pos->stride;
    const int64_t neighbors[4] = {i - 1, i + 1, i - stride, i + stride};
    int edge = 0;
    for (int k = 0; k < 4; k++) {
        uint64_t c = pos->color[neighbors[k]];
        if (c == BORDER)
            edge = 1;
        else if (c != color)
            return 0;
    }
    const int64_t diagonals[4] = {i - 1 - stride, i + 1 - stride, i - 1 + stride, i + 1 + stride};
    int enemies = edge;
    for (int k = 0; k < 4; k++)
        enemies += pos->color[diagonals[k]] == 3 - color;
    return enemies < 2;
}

static uint64_t uniform_move(const Position *pos, uint64_t color, uint64_t *rng)
{
    uint64_t count = (uint64_t)pos->empty_count;
    if (count == 0)
        return 0;
    uint64_t start = random_below(rng, count), i = start;
    for (;;) {
        uint64_t p = pos->empties[i];
        if (p != pos->simple_ko && !is_eye(pos, p, color) && !is_suicide(pos, p, color))
            return p;
        if (++i == count)
            i = 0;
        if (i == start)
            return 0;
    }
}

static int area_balance(const Position *pos)
{
    int balance = 0;
    const int64_t stride = pos->stride;
    for (int y = 0; y < pos->size; y++)
        for (int x = 0; x < pos->size; x++) {
            int64_t i = (y + 1) * stride + x + 1;
            int c = pos->color[i];
            if (c == EMPTY) {
                const int64_t neighbors[4] = {i - 1, i + 1, i - stride, i + stride};
                int seen = 0;
                for (int k = 0; k < 4; k++)
                    if (pos->color[neighbors[k]] != BORDER)
                        seen |= pos->color[neighbors[k]];
                c = seen;
            }
            if (c == 1)
                balance++;
            else if (c == 2)
                balance--;
        }
    return balance;
}

static int uniform_rollout(Position *pos, uint64_t *rng)
{
    uint64_t color = pos->side_to_move;
    int passes = 0, limit = 3 * pos->size * pos->size;
    for (int k = 0; k < limit; k++) {
        uint64_t move = uniform_move(pos, color, rng);
        if (move == 0) {
            pos->simple_ko = 0;
            if (++passes == 2)
                break;
        } else {
            passes = 0;
            place_stone(pos, move, color);
        }
        color = 3 - color;
    }
    return area_balance(pos);
}

/* Set the Zobrist keys, uint64[4][MAX_POINTS]. */
void set_keys(const uint64_t *keys)
{
    memcpy(zobrist, keys, sizeof zobrist);
}

/* Play `n` uniform rollouts from the empty board of `size` and return the sum of Black's balances. */
int64_t uniform_rollouts(int size, uint64_t *rng, int64_t n)
{
    static Position root, scratch;
    int64_t total = 0;
    clear(&root, size);
    for (int64_t k = 0; k < n; k++) {
        copy(&scratch, &root);
        total += uniform_rollout(&scratch, rng);
    }
    return total;
}
