/* Hermes
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef HERMES_ALLOCATION_COUNTER_H
#define HERMES_ALLOCATION_COUNTER_H

#include <stdint.h>

/* The number of allocations of the calling thread so far; 0 on platforms without the counter. */
uint64_t hermes_allocation_count(void);

#endif
