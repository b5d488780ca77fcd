/* For the Xtensa LX106 (ESP8266): one output and four columns at a time, as it has few registers.
 *
 * It can load a byte only without its sign, and from flash only whole words: weights are read four
 * at a time, and shifted apart once for all columns. Weights have 8 bits. */

#include "../twin_kernel.h"

#ifdef TWIN_KERNEL_LX106

#define GROUP   1
#define BY_WORD 1

#include "groups.h"

#define KERNEL twini_kernel_lx106
#define FIRST  group_first

#include "group_kernel.h"

#endif
