/** The ops listener of a gateway: what operators and Prometheus read, apart from the public port. */
import type { PasswordClient } from '@spillway/worker/client'
import { type FastifyBaseLogger, type FastifyInstance, fastify } from 'fastify'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

export async function buildOps(deps: { passwords: PasswordClient; log: FastifyBaseLogger }): Promise<FastifyInstance> {
  const { passwords, log } = deps
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  new Gauge({
    name: 'spillway_queue_jobs',
    help: 'Jobs in the queue, by state',
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'waiting' }, passwords.load().waiting)
      this.set({ state: 'active' }, passwords.load().active)
    },
  })
  new Gauge({
    name: 'spillway_capacity_jobs_per_second',
    help: 'Jobs a second that all live workers could finish together',
    registers,
    collect() {
      this.set(passwords.load().jobsPerSecond)
    },
  })
  new Gauge({
    name: 'spillway_workers',
    help: 'Workers that published their capacity of late',
    registers,
    collect() {
      this.set(passwords.load().workers)
    },
  })

  const app: FastifyInstance = fastify({
    loggerInstance: log,
    disableRequestLogging: true,
    forceCloseConnections: true,
  })
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  return app
}
