/* Predict y once a second and print it with its spread. */

#include "model.h"

/* One number for each feature: x1, x2. */
static float x[MODEL_FEATURES] = {-0.107211173f, 0.815751195f};

static uint32_t scratch[MODEL_SCRATCH / 4];
static twin_model model;
static twin_status opened;

void setup() {
    Serial.begin(115200);
    opened = twin_open(&model, model_twin, MODEL_SIZE);
    if (opened == TWIN_OK)
        opened = twin_self_test(&model, model_twin, scratch, sizeof scratch);
    if (opened == TWIN_ERROR_UNTESTED) /* older packs have no self-test */
        opened = TWIN_OK;
}

void loop() {
    twin_prediction out;
    twin_status status =
        opened ? opened : twin_predict(&model, scratch, sizeof scratch, x, &out, NULL);
    if (status == TWIN_OK) {
        Serial.print(out.mean, 6);
        Serial.print(' ');
        Serial.println(out.spread, 6);
    } else {
        Serial.print("error ");
        Serial.println(status); /* enum twin_status in twin.h */
    }
    delay(1000);
}
