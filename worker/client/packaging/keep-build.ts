// Keeps what is compiled as the older version that tests talk to (worker/test/older-version.test.ts). To be run when a version is released:
// pnpm --filter @spillway/client run keep-build
import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const clientDir = join(import.meta.dirname, '..')
const workerDir = join(clientDir, '..')
const archive = join(workerDir, 'test/older-version.tgz')

const dir = await mkdtemp(join(tmpdir(), 'spillway-build-'))
/** Where the worker finds it, before the client of the workspace. */
const client = join(dir, 'node_modules/@spillway/client')
/** Programs alone: no declarations, source maps or packed packages. */
const filter = (path: string) => !/\.(d\.c?ts|map|tsbuildinfo)$|dist\/package$/.test(path)
await cp(join(workerDir, 'dist'), join(dir, 'dist'), { recursive: true, filter })
await cp(join(clientDir, 'dist'), join(client, 'dist'), { recursive: true, filter })
await cp(join(clientDir, 'package.json'), join(client, 'package.json'))
await writeFile(join(dir, 'package.json'), '{ "type": "module" }\n')
// The same files give the same archive.
const reproducible = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
execFileSync('tar', [
  '--create',
  ...reproducible,
  '--use-compress-program=gzip -9n',
  `--file=${archive}`,
  '-C',
  dir,
  '.',
])
await rm(dir, { recursive: true })
