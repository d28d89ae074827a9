// Loaded into a measured process before its own code. From one SIGUSR2 to the next it adds up the
// bytes that V8 allocates, and then writes their number to a file that is named after the process.
import { writeFileSync } from 'node:fs'
import { GCProfiler, getHeapStatistics } from 'node:v8'

const usedBytes = () => getHeapStatistics().used_heap_size
let begun: { profiler: GCProfiler; usedBytes: number } | undefined

process.on('SIGUSR2', () => {
  if (begun === undefined) {
    begun = { profiler: new GCProfiler(), usedBytes: usedBytes() }
    begun.profiler.start()
    return
  }
  const { statistics } = begun.profiler.stop()
  const freed = statistics.reduce(
    (sum, { beforeGC, afterGC }) => sum + beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize,
    0,
  )
  writeFileSync(`${process.env.ALLOCATED_TO}${process.pid}`, String(usedBytes() - begun.usedBytes + freed))
  begun = undefined
})
