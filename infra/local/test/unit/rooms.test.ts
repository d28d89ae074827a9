// The rooms of each package and the way that imports go between them: downwards, as the lists have
// them from top to bottom.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'vitest'
import { repositoryDir } from '../../src/processes/repository.ts'

/** Folders, and files that stand beside them. */
const rooms: Record<string, string[]> = {
  'api/src': [
    ...['main', 'start', 'servers', 'config', 'config-rules', 'routes', 'operators', 'operations'],
    ...['mail', 'sessions', 'audit', 'plugins', 'schemas', 'rounds'],
  ],
  'worker/src': [
    ...['command', 'main', 'start', 'hashing-in-place', 'beside', 'fallback', 'config'],
    ...['consumer', 'ops', 'hashing'],
  ],
  'worker/client/src': [
    ...[
      'nestjs',
      'fastify',
      'bcrypt',
      'bcryptjs',
      'node-rs-bcrypt',
      'node-rs-argon2',
      'argon2',
      'index',
      'shared-passwords',
      'drop-in',
    ],
    ...['application', 'browser'],
  ],
  'worker/queue/src': [...['queue-client', 'servers', 'wait', 'jobs', 'redis', 'settings', 'wire', 'inside', 'errors']],
  'worker/common/src': [
    ...['tracing', 'shutdown', 'log', 'metrics', 'read-settings', 'settings', 'server-url', 'secrets'],
    ...['throttled-warning', 'pipeline-limit', 'within'],
  ],
  'infra/local/src': ['rig', 'start', 'services', 'processes'],
}

/** Where the gateway runs queues: the board, and mails. */
const queueRooms = ['api/src/operators/', 'api/src/mail/']

/** Packages that no file under a folder may import. */
const strangers: Record<string, RegExp> = {
  'api/src': /^(argon2|bcrypt|@node-rs\/.*)$/,
  'worker/client/src': /^(argon2|bcrypt|@node-rs\/.*|fastify|@spillway\/(api|worker|prisma).*)$/,
  'worker/queue/src': /^(argon2|bcrypt|@node-rs\/.*|fastify|@spillway\/(?!common).*)$/,
  'worker/common/src': /^@spillway\/.*$/,
  'worker/src': /^@spillway\/(api|prisma).*$/,
}

interface Import {
  file: string
  specifier: string
  isOfTypes: boolean
}

function importsUnder(dir: string): Import[] {
  return sourcesUnder(dir).flatMap((file) =>
    readFileSync(join(repositoryDir, file), 'utf8')
      .split('\n')
      .flatMap((line) => {
        const specifier = /(?:\bfrom |\bimport |\bimport\(|\brequire\()'([^']+)'/.exec(line)?.[1]
        return specifier === undefined ? [] : [{ file, specifier, isOfTypes: line.startsWith('import type ') }]
      }),
  )
}

/** Our own files, without generated ones. */
function sourcesUnder(dir: string): string[] {
  return readdirSync(join(repositoryDir, dir), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(dir, entry.name)
    if (entry.isDirectory()) return ['node_modules', 'dist', 'generated'].includes(entry.name) ? [] : sourcesUnder(path)
    return /\.c?ts$/.test(entry.name) ? [path] : []
  })
}

/** The place of a file in the list of its package, or -1. */
function placeOf(dir: string, file: string): number {
  const [room = ''] = posix.relative(dir, file).split('/')
  return rooms[dir]?.indexOf(room.replace(/\.c?[jt]s$/, '')) ?? -1
}

for (const dir of Object.keys(rooms)) {
  test(`${dir}: every file is in a room, and imports only from its own or one below`, () => {
    const imports = importsUnder(dir).filter(({ specifier }) => specifier.startsWith('.'))
    assert.ok(imports.length > 2, `only ${imports.length} imports were found`)
    const upwards = imports.filter(({ file, specifier, isOfTypes }) => {
      const target = posix.join(posix.dirname(file), specifier)
      const [from, to] = [placeOf(dir, file), placeOf(dir, target)]
      // The type of a configuration may be imported everywhere; the environment is read in main
      // alone.
      const isShapeOfConfig = isOfTypes && target === posix.join(dir, 'config.js')
      return from < 0 || to < 0 || (to < from && !isShapeOfConfig)
    })
    assert.deepEqual(upwards, [])
  })
}

for (const [dir, forbidden] of Object.entries(strangers)) {
  test(`${dir} imports nothing of what is others' business`, () => {
    // The door for Fastify has its types, and is given the application.
    const isDoor = ({ file, specifier, isOfTypes }: Import) => isOfTypes && file === `worker/client/src/${specifier}.ts`
    assert.deepEqual(
      importsUnder(dir).filter((found) => forbidden.test(found.specifier) && !isDoor(found)),
      [],
    )
  })
}

test('of the gateway exactly the board and mails import BullMQ', () => {
  const files = importsUnder('api/src').flatMap(({ file, specifier }) => (specifier === 'bullmq' ? [file] : []))
  assert.deepEqual(
    files.filter((file) => !queueRooms.some((room) => file.startsWith(room))),
    [],
  )
  assert.ok(queueRooms.every((room) => files.some((file) => file.startsWith(room))))
})

test("no package imports another's compiled files", () => {
  const imports = ['api', 'worker', 'prisma', 'infra', 'loadtests'].flatMap(importsUnder)
  assert.ok(imports.length > 1_000)
  assert.deepEqual(
    imports.filter(({ specifier }) => specifier.startsWith('@spillway/') && specifier.includes('/dist/')),
    [],
  )
})

test('no files import each other in a loop', () => {
  const stem = (path: string) => path.replace(/\.[cm]?[jt]s$/, '')
  const targets = new Map<string, string[]>()
  for (const { file, specifier } of ['api', 'worker', 'prisma', 'infra', 'loadtests'].flatMap(importsUnder))
    if (specifier.startsWith('.'))
      targets.set(stem(file), [...(targets.get(stem(file)) ?? []), stem(posix.join(posix.dirname(file), specifier))])
  assert.ok(targets.size > 400)

  const done = new Set<string>()
  const loops: string[] = []
  function follow(file: string, path: string[]): void {
    if (path.includes(file)) loops.push([...path.slice(path.indexOf(file)), file].join(' > '))
    if (path.includes(file) || done.has(file)) return
    for (const target of targets.get(file) ?? []) follow(target, [...path, file])
    done.add(file)
  }
  for (const file of targets.keys()) follow(file, [])
  assert.deepEqual(loops, [])
})
