#include "engine/exec/runtime.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <sched.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace celloom::engine {

void setUpAllocator() {
#ifdef __GLIBC__
    ::mallopt(M_MMAP_MAX, 0);                // no mapping for each large block: it would be unmapped, and faulted in, every time
    ::mallopt(M_TRIM_THRESHOLD, 0x7fffffff); // the heap's top is not given back (the limit is an int)
    ::mallopt(M_TOP_PAD, 64 << 20);          // and grows in larger steps
    ::mallopt(M_ARENA_MAX, 1);               // one heap for all threads: others are limited to 64 MB, less than one tensor
#endif
}

int setThreads(int count) {
    if (count <= 0) {
        cpu_set_t allowed;
        count = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    }
    at::set_num_threads(std::max(1, count));
    return at::get_num_threads();
}

} // namespace celloom::engine
