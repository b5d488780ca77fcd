/* Evaluates models converted by emlearn, for device.py: models.h provides them, and
 * MODELS is their number. One line per query: bits of the mean, and counts. */

#include "board.h"
#include "models.h"

static uint32_t bits(float value) {
    union {
        float number;
        uint32_t bits;
    } either;
    either.number = value;
    return either.bits;
}

static void say(const char *word, uint32_t number) {
    char text[10];
    unsigned i;
    for (i = 0; i < 8; i++)
        text[i] = "0123456789abcdef"[(number >> (28 - 4 * i)) & 15u];
    text[8] = '\n';
    text[9] = 0;
    board_write(word);
    board_write(text);
}

static float predict(const float *x) {
    float sum = x[0];
#if MODELS
    unsigned i;
    sum = 0;
    for (i = 0; i < MODELS; i++)
        sum += models[i](x, FEATURES);
    sum /= MODELS;
#endif
    return sum;
}

int main(void) {
    unsigned i;
    board_start_counter();
    for (i = 0; i < QUERIES; i++) {
        uint32_t count = board_counter();
        float mean = predict(queries[i]);
        count = board_counter() - count;
        say("mean ", bits(mean));
        say("counts ", count);
    }
    board_exit(0);
}
