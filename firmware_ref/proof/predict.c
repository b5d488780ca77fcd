/* Prediction with the portable kernel: any query to any pack of one shape that opening accepts.
 *
 * Whether sums overflow is a matter of sums.c. */

#include "shape.h"

void main(void) {
    static twin_model model;
    static int16_t raw_query[N_FEATURES];
    static int32_t members[N_ANCHORS];
    static float query[N_FEATURES];
    twin_run run;
    twin_raw raw;
    twin_prediction prediction;
    uint32_t size;
    unsigned i;
    fill_pack();
    fill_model(&model);
    /* Bytes beyond it are not valid memory. */
    size = twin_scratch_size(&model);
    //@ assert size == N_SCRATCH;
    for (i = 0; i < N_FEATURES; i++)
        raw_query[i] = (int16_t)Frama_C_interval(-32768, 32767);
    FILL(query, sizeof query);
    /* In steps, with a reading after each; then in one go. */
    if (twin_begin_raw(&run, &model, SCRATCH, size, raw_query, members) == TWIN_OK) {
        while (twin_step(&run, N_STEP) > 0)
            (void)twin_read_raw(&run, &raw);
        Frama_C_show_each_steps(run.count);
        (void)twin_read_raw(&run, &raw);
    }
    (void)twin_predict(&model, SCRATCH, size, query, &prediction, 0);
    Frama_C_show_each_end(prediction.intervals);
}
