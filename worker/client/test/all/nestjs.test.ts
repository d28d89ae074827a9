// The NestJS module, in a real application of NestJS that is installed from the registry with the packed package.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'vitest'
import { answersOf, compiled, install, skip } from '../installed.ts'

const nest = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@11.2.10`)
const decorators = ['--experimentalDecorators', '--emitDecoratorMetadata', '--useDefineForClassFields', 'false']

if (skip === false) await install([...nest, 'reflect-metadata@0.2.2', 'rxjs@7.8.2'])

test.skipIf(skip)(
  'passwords are injected by their type; requests in hand are answered before the application closes them',
  async () => {
    // Declarations of NestJS itself are not checked: those of the package are by its own test.
    const folder = await compiled(['nest.cts'], 5, ['--module', 'nodenext', ...decorators, '--skipLibCheck', 'true'])
    assert.deepEqual(await answersOf(join(folder, 'nest.cjs')), [
      ...['$2b$05$', { isRight: true }, { isRight: false }, { isRight: false }, { isRight: true }],
      ...['closed', 'process', 'function'],
    ])
  },
)
