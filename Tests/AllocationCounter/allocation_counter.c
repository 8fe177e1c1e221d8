/* Hermes
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counts the allocations of each thread, with glibc only. The counter is linked into the tests, and
 * scripts/bench-topics preloads it. It is never part of the server.
 */
#include "allocation_counter.h"

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HERMES_SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(HERMES_SANITIZED)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

/* With this TLS model, an access never allocates. */
static _Thread_local uint64_t count __attribute__((tls_model("initial-exec")));

uint64_t hermes_allocation_count(void) { return count; }

void *malloc(size_t size) {
    count += 1;
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count += 1;
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    count += 1;
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    count += 1;
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count += 1;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    count += 1;
    void *memory = __libc_memalign(alignment, size);
    if (memory == NULL) return 12; /* ENOMEM */
    *result = memory;
    return 0;
}

#else

uint64_t hermes_allocation_count(void) { return 0; }

#endif
