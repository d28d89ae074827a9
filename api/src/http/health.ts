/** GET /healthz uses no dependency; GET /readyz checks each dependency of a login. */

import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { databaseProblem, LOGIN_PROBE } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { RoutePlugin } from '../servers.js'

/** How long an answer is used for further probes, which have no limit, in milliseconds. */
const ANSWER_MS = 250

const Check = { type: 'string', enum: ['ok', 'failing'] } as const
const Liveness = {
  title: 'Liveness',
  description: 'The process is running',
  ...objectOf({ status: { const: 'ok' } }),
} as const
const Readiness = {
  title: 'Readiness',
  description: 'The state of each dependency of a login',
  ...objectOf({
    status: Check,
    checks: objectOf({ database: Check, queue: Check }),
    /** For information only: a gateway without workers is ready, because it can issue tickets. */
    workers: { type: 'integer' },
  }),
} as const

export const healthRoutes: RoutePlugin = async (app, { database, passwords, isDraining }) => {
  const unanswered = new ThrottledWarning(app.log, 'the database cannot be used')
  // A migration may lock the tables. Once they were found right, a connection is enough.
  let statement = LOGIN_PROBE
  const databaseAnswers = shareAnswer(async () => {
    try {
      await database.$executeRawUnsafe(statement)
      statement = 'SELECT 1'
      unanswered.recovered()
      return true
    } catch (error) {
      statement = LOGIN_PROBE
      unanswered.warn(new Error(databaseProblem(error)))
      return false
    }
  }, ANSWER_MS)

  const queueAnswers = shareAnswer(() => passwords.takesWrites(), ANSWER_MS)

  // Probes arrive every few seconds, so only warnings about them are logged.
  const probe = { logLevel: 'warn', config: { priority: 'always' } } as const
  const tags = ['Probes']
  const alive = { operationId: 'getLiveness', tags, summary: 'Liveness', response: { 200: Liveness } }
  app.get('/healthz', { ...probe, schema: alive }, async () => ({ status: 'ok' as const }))

  const response = { 200: Readiness, 503: Readiness }
  app.get(
    '/readyz',
    { ...probe, schema: { operationId: 'getReadiness', tags, summary: 'Readiness', response } },
    async (_request, reply) => {
      const [database, queue] = await Promise.all([databaseAnswers(), queueAnswers()])
      const checks = { database: word(database), queue: word(queue) }
      const ready = database && queue && !isDraining()
      const { workers } = passwords.estimates.load()
      return reply.code(ready ? 200 : 503).send({ status: word(ready), checks, workers })
    },
  )
}

function word(ok: boolean): 'ok' | 'failing' {
  return ok ? 'ok' : 'failing'
}

/** Shares the pending answer, or one that is younger than `forMs`. `ask` must never reject. */
export function shareAnswer<T>(
  ask: () => Promise<T>,
  forMs: number,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let shared: { answer: Promise<T>; untilMs: number } | undefined
  return () => {
    if (shared !== undefined && now() < shared.untilMs) return shared.answer
    const asking = { answer: ask(), untilMs: Number.POSITIVE_INFINITY }
    shared = asking
    void asking.answer.then(() => {
      asking.untilMs = now() + forMs
    })
    return asking.answer
  }
}
