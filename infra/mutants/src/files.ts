// The files of `pnpm mutants`: the modules in which it makes mistakes, their tests, and what is copied so that these run.
import { readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BuildOptions } from 'esbuild'

export const repositoryDir = fileURLToPath(new URL('../../..', import.meta.url))

/** Modules whose tests need neither PostgreSQL nor Redis nor a process, and run in milliseconds. */
const names = {
  'api/src': ['rounds'],
  'api/src/guessing': ['device-token', 'proof-of-work'],
  'api/src/limits': ['client-network'],
  'api/src/load-shedding': ['preference', 'promised-share', 'refusal-pace'],
  'api/src/ops': ['lockout'],
  'api/src/sessions': ['refresh-tokens', 'signing-keys'],
  'api/src/waiting': ['admission', 'prefer', 'wait-times'],
  'worker/src/board': ['words'],
  'worker/src/consumer': ['cpu-limit', 'jobs-in-hand', 'liveness', 'share-slots'],
  'worker/src/hashing': ['capacity-estimate', 'engine'],
  'worker/client/src': ['within'],
  'worker/client/src/passwords': ['deferred-share', 'load-state', 'outstanding-limit', 'retry-after', 'waiters'],
  'worker/client/src/protocol': ['capacity', 'job', 'key-list', 'policy', 'reply', 'seal', 'setting', 'stored-hash'],
  'worker/client/src/queue': ['keys', 'to-entries'],
  'worker/client/src/redis': ['clock', 'shards', 'url'],
  'worker/client/src/shards': ['choose', 'health'],
}
export const modules = Object.entries(names).flatMap(([folder, own]) => own.map((name) => `${folder}/${name}.ts`))

/** Their tests: all that are called so, and these. */
const otherTests = [
  'api/test/unit/ops-lockout.test.ts',
  ...['cpu-limit', 'engine'].map((name) => `worker/test/${name}.test.ts`),
  ...['redis-url', 'schema', 'seal'].map((name) => `worker/client/test/${name}.test.ts`),
]

const packages = ['api', 'worker', 'worker/client']

export function testFiles(): string[] {
  const unitTests = packages.flatMap((name) =>
    readdirSync(join(repositoryDir, name, 'test'))
      .filter((file) => file.endsWith('.unit.test.ts'))
      .map((file) => `${name}/test/${file}`),
  )
  return [...unitTests, ...otherTests]
}

/** Folders that are copied with all that is below them, and folders of which the TypeScript is: below tests, packages are installed. */
const copiedTrees = packages.map((name) => `${name}/src`)
const copiedFolders = [...packages.map((name) => `${name}/test`), 'worker/client/recipes/check']
export const copiedPatterns = [
  ...copiedTrees.map((tree) => `${tree}/**`),
  ...copiedFolders.map((folder) => `${folder}/*.ts`),
]

export function isCopied(file: string): boolean {
  return (
    copiedTrees.some((tree) => file.startsWith(`${tree}/`)) ||
    (copiedFolders.includes(posix.dirname(file)) && file.endsWith('.ts'))
  )
}

/** The bundled tests are here, where everything that they import from packages is installed. */
const bundledDir = 'worker/client/bundled'
export const bundledTests = `${bundledDir}/**/*.mjs`

/**
 * Each test file as one file of JavaScript: loading TypeScript would take four times as long as the tests. The client is in it as it is
 * copied: what is built of it has no mistakes, and may not be there.
 */
export const bundling: BuildOptions = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  alias: { '@spillway/client': './worker/client/src' },
  outbase: '.',
  outdir: bundledDir,
  outExtension: { '.js': '.mjs' },
}
