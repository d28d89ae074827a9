/** Threads for digests that libuv's pool does not compute: started when they are needed, ended when they are not. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Threads } from '../threads.js'
import type { DigestRequest } from './digest-programs.js'

/** A thread that nobody has needed for this long is ended. It takes about 5 MB. */
const IDLE_MS = 10_000

export type ComputeDigest = (request: DigestRequest, memoryKib?: number) => Promise<Buffer>

/** Computes digests on as many threads as there are slots, which the hashes of libuv's pool count against too. */
export function createDigestThreads(threads: Threads): ComputeDigest {
  const idle: { thread: Worker; timer: NodeJS.Timeout }[] = []

  function take(): Worker {
    const kept = idle.pop()
    if (kept === undefined) return new Worker(new URL('./digest-program.js', import.meta.url))
    clearTimeout(kept.timer)
    return kept.thread
  }

  function keep(thread: Worker): void {
    const timer = setTimeout(() => {
      idle.splice(idle.indexOf(entry), 1)
      void thread.terminate()
    }, IDLE_MS)
    const entry = { thread, timer: timer.unref() }
    thread.unref()
    idle.push(entry)
  }

  async function compute(request: DigestRequest): Promise<Buffer> {
    const thread = take()
    thread.ref()
    const answered = once(thread, 'message')
    thread.postMessage(request)
    const [digest]: Uint8Array[] = await answered
    keep(thread)
    return Buffer.from(digest ?? [])
  }

  return (request, memoryKib) => threads.run(() => compute(request), memoryKib)
}
