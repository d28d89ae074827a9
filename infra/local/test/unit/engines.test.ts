// The lockfile's packages run on the oldest Node that package.json promises, so that no install warns.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { satisfies, validRange } from 'semver'
import { test } from 'vitest'
import { parse } from 'yaml'
import { repositoryDir } from '../../src/processes/repository.ts'

interface Lockfile {
  packages: Record<string, { engines?: { node?: string } }>
}

test('no package of the lockfile asks for more than the Node that package.json does', async () => {
  const { engines } = JSON.parse(await readFile(join(repositoryDir, 'package.json'), 'utf8'))
  const oldest = `${/^>=(\d+\.\d+)$/.exec(engines.node)?.[1]}.0`
  const { packages }: Lockfile = parse(await readFile(join(repositoryDir, 'pnpm-lock.yaml'), 'utf8'))
  const wanted = Object.entries(packages).flatMap(([name, { engines }]) =>
    engines?.node ? [[name, engines.node]] : [],
  )
  assert.ok(wanted.length > 100)
  const newer = wanted.filter(([, node = '']) => validRange(node) === null || !satisfies(oldest, node))
  assert.deepEqual(newer, [])
})
