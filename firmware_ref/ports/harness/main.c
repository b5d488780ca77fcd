/* Evaluates the queries of the image with its pack, and tells the host what came of it.
 *
 * Each line is a word and numbers of eight hexadecimal digits:
 *
 *     open STATUS CONTEXT STACK          bytes of twin_model, high-water mark of twin_open
 *     scratch BYTES STACK                what twin_scratch_size says, mark of the first prediction
 *     empty COUNTS                       of measuring nothing
 *     query MEAN SPREAD MEMBERS COUNTS   for each: bits of the floats, a hash of the estimates
 *     done
 *
 * A hash of 0 says that the estimates were not kept, for want of memory. */

#include "board.h"
#include "../../src/twin_read.h"

extern const uint8_t board_pack[], board_queries[];

#if TWIN_FLASH == 2
#define PLACE(symbol) pgm_get_far_address(symbol)
#else
#define PLACE(symbol) ((twin_flash)(symbol))
#endif

enum { LARGEST_STACK = 1 << 14, PAINT = 0xA5, NEAR = 32 };

static twin_model model;
static twin_prediction out;
static uint32_t number[4];

static void say(const char *word, unsigned count) {
    unsigned i, digit;
    board_write(word);
    for (i = 0; i < count; i++) {
        char text[10];
        text[0] = ' ';
        for (digit = 0; digit < 8; digit++) {
            unsigned value = (unsigned)(number[i] >> (28 - 4 * digit)) & 15u;
            text[digit + 1] = (char)(value < 10 ? '0' + value : 'a' + value - 10);
        }
        text[9] = 0;
        board_write(text);
    }
    board_write("\n");
}

static void stop(const char *why) {
    board_write(why);
    board_exit(1);
}

static inline uintptr_t stack_pointer(void) {
#if defined(__AVR__)
    return SP;
#else
    uintptr_t here;
#if defined(__riscv)
    __asm volatile("mv %0, sp" : "=r"(here));
#else
    __asm volatile("mov %0, sp" : "=r"(here));
#endif
    return here;
#endif
}

/* The lowest byte below `top` that is painted. */
static volatile uint8_t *canvas(uintptr_t top) {
    uint8_t *low = board_stack_end();
    return top - (uintptr_t)low > LARGEST_STACK ? (uint8_t *)(top - LARGEST_STACK) : low;
}

static void paint(uintptr_t top) {
    volatile uint8_t *at;
    for (at = canvas(top); (uintptr_t)at < top - NEAR; at++)
        *at = PAINT;
}

/* Bytes below `top` that were used since. */
static uint32_t used(uintptr_t top) {
    volatile uint8_t *low = canvas(top), *at = low;
    while ((uintptr_t)at < top && *at == PAINT)
        at++;
    if (at == low)
        stop("the stack met other memory\n");
    return (uint32_t)(top - (uintptr_t)at);
}

static void fetch(twin_flash at, float *x) {
    unsigned i;
    for (i = 0; i < model.features; i++, at += 4) {
        union {
            uint32_t bits;
            float number;
        } feature;
        feature.bits = twin_u32(at);
        x[i] = feature.number;
    }
}

static uint32_t hash(const int32_t *members) {
    uint32_t value = 2166136261u;
    unsigned i;
    for (i = 0; i < model.members; i++)
        value = (value ^ (uint32_t)members[i]) * 16777619u;
    return value;
}

static uint32_t bits(float value) {
    union {
        float number;
        uint32_t bits;
    } either;
    either.number = value;
    return either.bits;
}

/* Memory for the query and the scratch, and for the estimates if there is enough. */
static uint8_t *room_for(uint32_t scratch, int32_t **members) {
    uint32_t fixed = 4 * (uint32_t)model.features + scratch;
    uint8_t *memory = (uint8_t *)board_memory(fixed + 4 * (uint32_t)model.members);
    *members = 0;
    if (memory)
        *members = (int32_t *)(void *)memory;
    else
        memory = (uint8_t *)board_memory(fixed);
    if (!memory)
        stop("too little memory\n");
    return *members ? memory + 4 * (uint32_t)model.members : memory;
}

int main(void) {
    twin_flash pack = PLACE(board_pack), at = PLACE(board_queries);
    uintptr_t top = stack_pointer();
    uint32_t size, left;
    int32_t *members;
    uint8_t *scratch;
    float *x;

    paint(top);
    number[0] = (uint32_t)twin_open(&model, pack, twin_u32(pack + 8));
    number[2] = used(top);
    number[1] = sizeof model;
    say("open", 3);
    if (number[0])
        board_exit(1);

    size = twin_scratch_size(&model);
    x = (float *)(void *)room_for(size, &members);
    scratch = (uint8_t *)(x + model.features);
    left = twin_u32(at);
    at += 4;
    fetch(at, x);
    paint(top);
    twin_predict(&model, scratch, size, x, &out, members);
    number[1] = used(top);
    number[0] = size;
    say("scratch", 2);

    board_start_counter();
    number[0] = board_counter();
    number[0] = board_counter() - number[0];
    say("empty", 1);
    for (; left; left -= 4 * (uint32_t)model.features, at += 4 * (uint32_t)model.features) {
        fetch(at, x);
        number[3] = board_counter();
        if (twin_predict(&model, scratch, size, x, &out, members))
            stop("a query was refused\n");
        number[3] = board_counter() - number[3];
        number[0] = bits(out.mean);
        number[1] = bits(out.spread);
        number[2] = members ? hash(members) : 0;
        say("query", 4);
    }
    say("done", 0);
    board_exit(0);
    return 0;
}
