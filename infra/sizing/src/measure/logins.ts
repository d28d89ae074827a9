// Logins at random moments (Poisson), each answered or ticketed, and the waits that the worker saw.
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestProcess, until } from '@spillway/local/testing'
import type { ApiClient } from '@spillway/local/testing/api-client'
import type { MeasuredSystem } from './system.ts'

/** What the worker says of a job. */
export interface JobTimes {
  /** When it ended, as epoch milliseconds. */
  endedAt: number
  queueWaitMs: number
  serviceMs: number
}

/** One login by ticket at most: whoever asks for the time in the queue needs no more. Fails on any other answer. */
export async function logIn(api: ApiClient, email: string): Promise<void> {
  const { status, text } = await api.login({ email, password: 'whatever it is' })
  if (status !== 200 && status !== 202) throw new Error(`A login was answered with ${status}: ${text}`)
}

/** Logs in at a rate that may change with the seconds since the start, for so long, and gives what the worker saw of it. */
export async function logInAtRate(
  { api, worker }: MeasuredSystem,
  emails: string[],
  { perSecond, forS }: { perSecond: (atS: number) => number; forS: number },
): Promise<JobTimes[]> {
  const before = worker.logs.length
  const running: Promise<void>[] = []
  const startedAt = performance.now()
  for (let dueS = 0, turn = 0; dueS < forS; turn += 1) {
    await sleep(Math.max(0, dueS * 1_000 - (performance.now() - startedAt)))
    running.push(logIn(api, emails[turn % emails.length] ?? ''))
    dueS += -Math.log(1 - Math.random()) / perSecond(dueS)
  }
  await Promise.all(running)
  const jobs = (): JobTimes[] => jobsSince(worker, before)
  await until(() => jobs().length >= running.length, { timeoutMs: 120_000, what: 'the end of all jobs' })
  return jobs()
}

/** What the worker says of its jobs from a line of its log on. */
export function jobsSince(worker: TestProcess, line: number): JobTimes[] {
  return worker.logs.slice(line).flatMap(jobTimes)
}

function jobTimes({ msg, time, queueWaitMs, serviceMs }: Record<string, unknown>): JobTimes[] {
  if (msg !== 'job answered' || typeof queueWaitMs !== 'number' || typeof serviceMs !== 'number') return []
  return [{ endedAt: Date.parse(String(time)), queueWaitMs, serviceMs }]
}

/** Logs in with so many at a time, for so long, and gives how many that were. */
export async function logInAtOnce(
  { api }: MeasuredSystem,
  emails: string[],
  atOnce: number,
  forS: number,
): Promise<number> {
  const until = performance.now() + forS * 1_000
  let logins = 0
  const people = Array.from({ length: atOnce }, async (_, person) => {
    for (let turn = person; performance.now() < until; turn += atOnce) {
      await logIn(api, emails[turn % emails.length] ?? '')
      logins += 1
    }
  })
  await Promise.all(people)
  return logins
}
