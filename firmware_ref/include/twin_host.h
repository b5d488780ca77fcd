/* Kernels for processors that run an operating system. What a processor supports is known at run
 * time only, so twin_open selects the fastest; a program can select another one here. All of them
 * compute the same bits. Not available if TWIN_HOST is 0. */

#ifndef TWIN_HOST_H
#define TWIN_HOST_H

#include "twin.h"

#if TWIN_HOST

#ifdef __cplusplus
extern "C" {
#endif

/* Name of kernel `number` of those that this processor has for the open model, such as "neon_dot".
 * The fastest comes first, "portable" last; NULL after it. */
const char *twin_kernel_name(const twin_model *model, unsigned number);

/* Let kernel `number` evaluate the open model. Changes the required scratch. Refused as unsupported
 * after the last. */
twin_status twin_set_kernel(twin_model *model, unsigned number);

/* Bytes of memory that twin_prepare needs for the open model, at any alignment: at most three times
 * the pack, plus 64 KB, and with silu 64 KB for each different fraction of its layers. 0 if the
 * kernel has nothing to prepare, or would need more than that. */
uint32_t twin_prepared_size(const twin_model *model);

/* Arrange the weights for the kernel, and compute once what does not depend on a query; predictions
 * are then several times as fast, and need a different scratch. The memory must stay unchanged as
 * long as the model is used; it is only read, so copies of the model and threads may share it.
 * TWIN_ERROR_SCRATCH if it is too small, TWIN_ERROR_UNSUPPORTED if the size is 0: the model then
 * works unprepared. twin_set_kernel undoes it. */
twin_status twin_prepare(twin_model *model, void *memory, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif

#endif
