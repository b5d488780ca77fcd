/* Every combination of levels and some numbers, encoded and predicted: bits as hexadecimal words. */

#include "board.h"
#include "model.h"
#include <math.h>

static const float carats[] = {0.3f, 2.0f, 9.0f, NAN};
static const float depths[] = {60.5f, NAN};

static twin_model model;
static uint32_t scratch[MODEL_SCRATCH / 4];
static float inputs[MODEL_FEATURES];

static void write_word(uint32_t word) {
    char text[10];
    int k;
    for (k = 0; k < 8; k++)
        text[k] = "0123456789abcdef"[word >> (28 - 4 * k) & 15];
    text[8] = ' ';
    text[9] = 0;
    board_write(text);
}

static void write_bits(float value) {
    union {
        float value;
        uint32_t word;
    } bits;
    bits.value = value;
    write_word(bits.word);
}

static int answer(const struct model_row *row) {
    twin_prediction out;
    int k, unknown = model_encode(row, inputs);
    if (twin_predict(&model, scratch, sizeof scratch, inputs, &out, NULL) != TWIN_OK)
        return 1;
    for (k = 0; k < MODEL_FEATURES; k++)
        write_bits(inputs[k]);
    write_bits(out.mean);
    write_bits(out.low);
    write_bits(out.high);
    write_word(out.outside);
    write_word(out.missing);
    write_word((uint32_t)unknown);
    board_write("\n");
    return 0;
}

int main(void) {
    struct model_row row;
    int cut, grade, i, j;
    if (twin_open(&model, model_twin, MODEL_SIZE) != TWIN_OK)
        return 1;
    for (cut = 0; cut <= (int)MODEL_CUT_MISSING; cut++)
        for (grade = 0; grade <= (int)MODEL_GRADE_MISSING; grade++)
            for (i = 0; i < 4; i++)
                for (j = 0; j < 2; j++) {
                    row.carat = carats[i];
                    row.cut = (enum model_cut)cut;
                    row.depth = depths[j];
                    row.grade = (enum model_grade)grade;
                    if (answer(&row))
                        return 1;
                }
    return 0;
}
