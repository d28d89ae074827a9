/** GET /healthz and GET /readyz: probes. Liveness touches nothing; readiness names each thing a login needs. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import Type from 'typebox'
import type { RouteDeps } from './deps.js'

const Check = Type.Union([Type.Literal('ok'), Type.Literal('failing')])
const Readiness = Type.Object({
  status: Check,
  checks: Type.Object({ database: Check, queue: Check }),
  /** For information: a gateway without workers is ready, it gives tickets. */
  workers: Type.Integer(),
})

export const healthRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { database, passwords, isDraining }) => {
  // Probes come every few seconds; only what is wrong with them is worth a line.
  const logLevel = 'warn'

  app.get(
    '/healthz',
    { logLevel, schema: { summary: 'Liveness', response: { 200: Type.Object({ status: Type.Literal('ok') }) } } },
    async () => ({ status: 'ok' as const }),
  )

  app.get(
    '/readyz',
    { logLevel, schema: { summary: 'Readiness', response: { 200: Readiness, 503: Readiness } } },
    async (_request, reply) => {
      const answers = await database.$queryRaw`SELECT 1`.then(
        () => true,
        () => false,
      )
      const checks = { database: word(answers), queue: word(passwords.isReady()) }
      const ready = answers && passwords.isReady() && !isDraining()
      return reply.code(ready ? 200 : 503).send({ status: word(ready), checks, workers: passwords.load().workers })
    },
  )
}

function word(ok: boolean): 'ok' | 'failing' {
  return ok ? 'ok' : 'failing'
}
