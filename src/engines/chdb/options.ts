import type { WorkerOptions } from './protocol.ts'

export interface ChdbOptions {
  /** Folder of the data; one process at a time. */
  path: string
  /** Folder for incoming blocks; on the same disk as the data, emptied at the start. */
  scratchPath: string
  /** Maximum of open queries, and of waiting writes (default 64); further ones are refused as `overloaded`. */
  queueMax?: number
  /** Longest wait for the next chunk of an answer (default 5 minutes). */
  deadlineMs?: number
}

/** Sizes the engine: a query takes at most half of it, sorts go to disk from an eighth on. */
const MEMORY_BYTES = 1 << 30

/**
 * Threads of the engine's own pools, whose defaults are for servers with a machine to themselves: cleaning up old parts
 * alone takes 128 at once, and each of them costs three open files and its stack. Idle ones are given back.
 */
const POOLS = {
  max_thread_pool_free_size: 8,
  max_parts_cleaning_thread_pool_size: 2,
  max_active_parts_loading_thread_pool_size: 4,
  max_outdated_parts_loading_thread_pool_size: 2,
  max_unexpected_parts_loading_thread_pool_size: 2,
  max_prefixes_deserialization_thread_pool_size: 2,
  max_io_thread_pool_size: 4,
  threadpool_local_fs_reader_pool_size: 4,
}

export const workerOptions = (options: ChdbOptions): WorkerOptions => {
  const settings = {
    max_threads: 1, // the machine is shared
    max_insert_threads: 1,
    max_memory_usage: MEMORY_BYTES / 2,
    max_bytes_before_external_sort: MEMORY_BYTES / 8,
    max_bytes_before_external_group_by: MEMORY_BYTES / 8,
    mark_cache_size: MEMORY_BYTES / 16,
    primary_index_cache_size: MEMORY_BYTES / 16,
    query_condition_cache_size: MEMORY_BYTES / 64,
    ...POOLS,
    max_query_size: 64 << 20,
    output_format_json_quote_64bit_integers: 0,
    schema_inference_use_cache_for_file: 0,
  }
  return {
    path: options.path,
    scratchPath: options.scratchPath,
    engineArguments: Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
  }
}
