// Starts an application to storm, and storms as processes of their own.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startProcess } from '@spillway/infra/processes/node-process'
import { scratchDir } from '@spillway/infra/rig/namespace'
import type { TestContext } from 'vitest'
import type { StormResult } from '../../storm/src/storm.ts'

/** The trials before a storm: of the first user and of the last. */
export const TRIALS = 2
/** How long the slow endpoint of the application takes. */
export const SLOW_MS = 300
/** With characters that JSON, URLs and HTML write otherwise. */
export const PASSWORD = 'correct "horse" & <battery> stäple'
export const BODY = JSON.stringify({ email: 'user{n}@example.test', password: PASSWORD })

export async function startApplication(t: TestContext, env: NodeJS.ProcessEnv = {}) {
  const application = startProcess({
    entry: 'loadtests/test/storm/application.ts',
    nodeArgs: ['--import', 'tsx'],
    env: { PASSWORD, ...env },
  })
  t.onTestFinished(() => application.close())
  const { port } = await application.waitForLog(({ msg }) => msg === 'listening')
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    signal: application.signal,
    /** The requests so far, by path. */
    async seen(): Promise<Record<string, { body: string; cookie?: string; atMs: number }[]>> {
      return JSON.parse(await (await fetch(`${url}/seen`)).text())
    },
  }
}

export function startStorm(t: TestContext, ...args: string[]) {
  const storm = startProcess({ entry: 'loadtests/storm/src/main.ts', args, nodeArgs: ['--import', 'tsx'] })
  t.onTestFinished(() => storm.close())
  return storm
}

/** How a storm ended, and all that it said and wrote. */
export async function stormed(t: TestContext, url: string, ...args: string[]) {
  const dir = await scratchDir(t)
  const [json, report] = [join(dir, 'storm.json'), join(dir, 'storm.html')]
  const storm = startStorm(t, '--target', url, '--json', json, '--report', report, ...args)
  const { code } = await storm.exited
  const read = (file: string) => readFile(file, 'utf8').catch(() => undefined)
  const [written, html = ''] = await Promise.all([read(json), read(report)])
  /** Throws where none was written. */
  const result = (): StormResult => JSON.parse(written ?? storm.output())
  return { code, said: storm.output().replaceAll('\n', ' '), written: written ?? '', html, result }
}
