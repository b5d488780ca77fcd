/* The input map: curves of the features in front of the twins (FORMAT.md, section 8).
 *
 * Each feature has a row of the table at each of its knots, and between two knots a mix of two
 * rows. The twins take the query, with zeros for further numbers, plus the rows of all features. */

#include "twin_arith.h"
#include "twin_model.h"

#if TWIN_MAP

/* Parts between two rows. */
enum { WHOLE_BITS = 14 };

TWIN_INTERNAL void twini_map(twin_run *run) {
    const twin_model *model = run->model;
    twin_flash head = model->map, knot = model->knots, row = model->table;
    twini_place *end = (twini_place *)run->partial, *place;
    unsigned i, inputs = model->inputs;
    /* First the place of each feature, as what the twins take replaces the query. */
    for (i = 0; i < model->features; i++) {
        unsigned left = twini_u8(head);
        int32_t at = run->query[i], low, high;
        head++;
        if (!left)
            continue;
        high = twini_i16(knot);
        if (at < high)
            at = high;
        do {
            low = high;
            knot += 2;
            row += inputs;
            high = twini_i16(knot);
        } while (--left && at >= high);
        if (at > high)
            at = high;
        end->row = row;
        end->part = (unsigned)(((uint32_t)(at - low) << WHOLE_BITS) / (uint32_t)(high - low));
        end++;
        left++;
        knot += 2 * left;
        row += left * (twini_size)inputs;
    }
    for (i = 0; i < inputs; i++) {
        int32_t sum = 0;
        for (place = (twini_place *)run->partial; place != end; place++) {
            int32_t before = twini_i8(place->row + i - inputs);
            sum += before * ((int32_t)1 << WHOLE_BITS) +
                   (twini_i8(place->row + i) - before) * (int32_t)place->part;
        }
        run->query[i] = (int16_t)twini_sat(run->query[i] + twini_rsh(sum, twini_u8(head)));
        head++;
    }
}

#endif
