// What a program that computes sets up once, before its first tensor.
#pragma once

namespace celloom::engine {

/// Keeps freed memory in the process. With glibc's defaults the large tensors of each step go back to the system and are faulted in again,
/// page by page, in the next (docs/performance.md has the measured gain). Call first in main; does nothing without glibc.
void setUpAllocator();

/// Threads inside one operation. 0: one for each processor this process may use. Returns the number in force. Results are
/// reproducible bit for bit for one number of threads.
int setThreads(int count);

} // namespace celloom::engine
