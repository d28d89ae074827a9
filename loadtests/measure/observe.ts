// Watches the latency of a contender's other endpoints while something happens to it.
import { createApiClient } from '@spillway/infra/rig/api-client'
import type { Running } from '../contenders/contender.ts'
import { Probe } from './probe.ts'

/** Of each bystander, per second: enough for a p99 in ten seconds, for a hundredth of a core. */
const BYSTANDERS_PER_SECOND = 40

export async function observe<T>(running: Running, happening: () => Promise<T>) {
  const client = createApiClient(running.url)
  const ask = (path: string) => new Probe({ perSecond: BYSTANDERS_PER_SECOND, ask: () => client.get(path) }).start()
  // One endpoint that asks the file system, and one that asks nothing at all.
  const [neighbour, healthz] = [ask(running.neighbourPath), ask('/healthz')]
  const stop = () => Promise.all([neighbour.stop(), healthz.stop()])
  try {
    const [before, startMs] = [process.cpuUsage(), performance.now()]
    const result = await happening()
    const { user, system } = process.cpuUsage(before)
    /**
     * Per cent of a core used by this process. Near a hundred, the figures measure the generator.
     */
    const generatorPercent = (user + system) / 10 / (performance.now() - startMs)
    await stop()
    return { result, generatorPercent, bystanders: { neighbour: neighbour.tookMs, healthz: healthz.tookMs } }
  } finally {
    await stop()
    client.close()
  }
}
