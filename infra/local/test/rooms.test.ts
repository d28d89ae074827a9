// The rooms of each package and the way that imports go between them: downwards, as the lists have them from top to bottom.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'node:test'
import { repositoryDir } from '../src/processes/repository.ts'

/** Folders, and files that stand beside them. */
const rooms: Record<string, string[]> = {
  'api/src': [
    ...['main', 'gateway', 'app', 'config'],
    ...['routes', 'ops', 'operations', 'waiting', 'sessions', 'limits', 'load-shedding', 'http', 'problems', 'schemas'],
  ],
  'worker/src': ['main', 'start', 'fallback', 'config', 'consumer', 'board', 'ops', 'hashing', 'process'],
  'worker/client/src': [
    ...['index', 'passwords', 'queue', 'protocol', 'redis'],
    ...['errors', 'logger', 'within', 'with-resolvers'],
  ],
  'infra/local/src': ['testing', 'start', 'services', 'processes'],
}

/** Packages that no file under a folder may import. */
const strangers: Record<string, RegExp> = {
  'api/src': /^(bullmq|argon2|bcrypt|@node-rs\/.*)$/,
  'worker/client/src': /^(argon2|bcrypt|@node-rs\/.*|fastify|@spillway\/(api|worker|prisma).*)$/,
  'worker/src': /^@spillway\/(api|prisma).*$/,
}

interface Import {
  file: string
  specifier: string
  isOfTypes: boolean
}

function importsUnder(dir: string): Import[] {
  const files = readdirSync(join(repositoryDir, dir), { recursive: true, encoding: 'utf8' })
  return files.filter(isSource).flatMap((name) => {
    const file = posix.join(dir, name)
    const source = readFileSync(join(repositoryDir, file), 'utf8')
    const found = source.matchAll(/(import type|import|export)?[^'\n;]*(?:from|import\(|require\(|import) ?'([^']+)'/g)
    return [...found].map(([, kind, specifier = '']) => ({ file, specifier, isOfTypes: kind === 'import type' }))
  })
}

function isSource(name: string): boolean {
  return /\.c?ts$/.test(name) && !name.startsWith('generated')
}

/** The place of a file in the list of its package, or -1. */
function placeOf(dir: string, file: string): number {
  const [room = ''] = posix.relative(dir, file).split('/')
  return rooms[dir]?.indexOf(room.replace(/\.c?[jt]s$/, '')) ?? -1
}

for (const dir of Object.keys(rooms)) {
  test(`${dir}: every file is in a room, and imports only from its own or one below`, () => {
    const imports = importsUnder(dir).filter(({ specifier }) => specifier.startsWith('.'))
    assert.ok(imports.length > 20, `only ${imports.length} imports were found`)
    const upwards = imports.filter(({ file, specifier, isOfTypes }) => {
      const target = posix.join(posix.dirname(file), specifier)
      const [from, to] = [placeOf(dir, file), placeOf(dir, target)]
      // What a configuration looks like may be known everywhere; it is read in main alone.
      const isShapeOfConfig = isOfTypes && target === posix.join(dir, 'config.js')
      return from < 0 || to < 0 || (to < from && !isShapeOfConfig)
    })
    assert.deepEqual(upwards, [])
  })
}

for (const [dir, forbidden] of Object.entries(strangers)) {
  test(`${dir} imports nothing of what is others' business`, () => {
    assert.deepEqual(
      importsUnder(dir).filter(({ specifier }) => forbidden.test(specifier)),
      [],
    )
  })
}

test("no package imports another's compiled files", () => {
  const packages = ['api', 'worker', 'prisma', 'infra', 'loadtests'].flatMap((dir) =>
    importsUnder(dir).filter(({ file }) => !/(^|\/)(node_modules|dist)\//.test(file)),
  )
  assert.ok(packages.length > 1_000)
  assert.deepEqual(
    packages.filter(({ specifier }) => specifier.startsWith('@spillway/') && specifier.includes('/dist/')),
    [],
  )
})
