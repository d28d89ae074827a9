// The package as applications have it: packed, and installed from the tarball in an empty folder by npm.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Ending, scratchDir, testEnvironment } from '@spillway/infra/harness/namespace'
import { Keeper } from '@spillway/infra/processes/keeper'
import { defaultStateDir } from '@spillway/infra/processes/repository'
import { takeLock } from '@spillway/infra/start/lock'
import { afterAll } from 'vitest'

export const run = promisify(execFile)
const clientDir = fileURLToPath(new URL('..', import.meta.url))
const programsDir = fileURLToPath(new URL('application', import.meta.url))
const PING_TIMEOUT_MS = 20_000
const PACKED_WITHIN_MS = 300_000
/** npm repeats what fails for minutes, and may wait for ever. */
const INSTALL_TIMEOUT_MS = 240_000

/** TypeScript 5, which applications have, and the 7 of this repository. */
const compilers = {
  5: join(clientDir, '../../api/test/clients/node_modules/typescript/bin/tsc'),
  7: join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc'),
}
export type Compiler = keyof typeof compilers

const { PATH, HOME, NODE_EXTRA_CA_CERTS } = process.env
/** Where nothing but Node's own variables is known of this repository. */
export const env = { PATH, HOME, NODE_EXTRA_CA_CERTS, NODE_ENV: 'production' }

/** Why the tests of a file are skipped, or false. */
export const skip = await run('npm', ['ping'], { cwd: tmpdir(), timeout: PING_TIMEOUT_MS }).then(
  () => false as const,
  () => 'the registry of npm cannot be reached',
)

/** The tarball of the package, packed once for all tests of a run. */
export async function packed(): Promise<string> {
  const dir = join(testEnvironment().dir, 'packed')
  const keeper = new Keeper()
  // One at a time, because what goes into the tarball is first written into the package's folder.
  const lock = await takeLock(join(defaultStateDir, 'pack.lock'), keeper, PACKED_WITHIN_MS)
  try {
    const args = ['--yes', 'pnpm', 'pack', '--pack-destination', dir]
    if (!existsSync(dir)) await keeper.run({ command: 'npx', args, cwd: clientDir })
    return join(dir, ...(await readdir(dir)))
  } finally {
    lock?.close()
    await keeper.close()
  }
}

/** An application that has the package and others, until the tests of the file [or one] have ended. */
export async function install(others: readonly string[] = [], t: Ending = { onTestFinished: afterAll }) {
  /** The folder around it is empty but for it. */
  const application = join(await scratchDir(t), 'application')
  await mkdir(application)
  await writeFile(join(application, 'package.json'), '{ "private": true, "type": "module" }')
  if (skip === false) {
    const wanted = [await packed(), '@types/node@20.19.43', ...others]
    await run('npm', ['install', '--no-audit', '--no-fund', ...wanted], {
      cwd: application,
      env,
      timeout: INSTALL_TIMEOUT_MS,
    })
  }
  return {
    application,
    /** Compiles programs strictly, with the declarations of all libraries checked, and gives the folder of what came out. */
    async compiled(programs: string[], compiler: Compiler, options: string[], texts: Record<string, string> = {}) {
      const folder = await mkdtemp(join(application, 'compiled-'))
      for (const program of programs) {
        const text = texts[program] ?? (await readFile(join(programsDir, program)))
        await writeFile(join(folder, program), text)
      }
      const strict = ['--strict', '--skipLibCheck', 'false', '--target', 'es2022', '--lib', 'es2022', '--types', 'node']
      const known = compiler === 5 ? strict : [...strict, '--ignoreConfig']
      await run(process.execPath, [compilers[compiler], ...known, ...options, ...programs], { cwd: folder }).catch(
        ({ stdout }: { stdout: string }) => Promise.reject(new Error(stdout)),
      )
      return folder
    },
    /** What a program writes, and nothing else. */
    async answersOf(program: string, variables: NodeJS.ProcessEnv = {}): Promise<unknown> {
      const { stdout, stderr } = await run(process.execPath, [program], {
        cwd: application,
        env: { ...env, ...variables },
      })
      assert.equal(stderr, '')
      return JSON.parse(stdout)
    },
  }
}
