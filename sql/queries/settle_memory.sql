-- Makes a session's process keep the memory that statements need and give back. No parameters, one row.
-- A call of run_queue takes some hundred KiB, which glibc gave back to the kernel each time: two fifths of the call
-- (docs/benchmarks/steps.md). When a large piece is freed that was mapped for itself, glibc raises the thresholds for that to
-- its size and twice its size (mallopt(3), M_MMAP_THRESHOLD): this takes and frees such a piece. At most 8 MiB a session stay.
-- With another allocator it does nothing.
SELECT octet_length(repeat(' ', 4 * 1024 * 1024)) AS taken
