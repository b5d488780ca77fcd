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
}

void loop() {
    twin_prediction out;
    twin_status status = twin_predict(&model, scratch, sizeof scratch, x, &out, NULL);
    if (status == TWIN_OK) {
        Serial.print(out.mean, 6);
        Serial.print(' ');
        Serial.println(out.spread, 6);
    } else {
        Serial.print("error ");
        Serial.println(opened == TWIN_OK ? status : opened); /* enum twin_status in twin.h */
    }
    delay(1000);
}
