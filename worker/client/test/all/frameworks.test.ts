// The module of NestJS and the plugin of Fastify, and errors in Express and Hono: real applications, installed from the registry with the packed package.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { install, skip } from '../installed.ts'

const nest = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@11.2.10`)
const strict = ['--module', 'nodenext', '--skipLibCheck', 'true']
const decorators = ['--experimentalDecorators', '--emitDecoratorMetadata', '--useDefineForClassFields', 'false']

const others = ['fastify@5.12.8', 'express@5.3.0', 'hono@4.13.19']

const { answersOf, compiled } = await install([...nest, ...others, 'reflect-metadata@0.2.2', 'rxjs@7.8.2'])

test.skipIf(skip)(
  'passwords are injected by their type; requests in hand are answered before the application closes them',
  async () => {
    // Declarations of NestJS itself are not checked: those of the package are by its own test.
    const folder = await compiled(['nest.cts'], 5, [...strict, ...decorators])
    assert.deepEqual(await answersOf(join(folder, 'nest.cjs')), [
      ...['$2b$05$', { isRight: true }, { isRight: false }, { isRight: false }, { isRight: true }],
      ...['closed', 'process', 'function'],
    ])
  },
)

const boot = `
import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
void NestFactory.createApplicationContext(AppModule, { logger: ['error'] }).then(async (app) => {
  console.log(JSON.stringify([app.get(AuthService) instanceof AuthService, await app.get(Passwords).verify('x', null)]))
  await app.close()
})`

test.skipIf(skip)('the snippet of the README boots with what it shows', async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  const snippet = /^## NestJS\n+```ts\n([\s\S]*?)^```/m.exec(readme)?.[1] ?? ''
  const folder = await compiled(['snippet.cts'], 5, [...strict, ...decorators], { 'snippet.cts': snippet + boot })
  assert.deepEqual(await answersOf(join(folder, 'snippet.cjs')), [true, false])
})

test.skipIf(skip)(
  'what is busy is answered 503 with Retry-After by Fastify, Express and Hono; the plugin answers what is in hand before it closes',
  async () => {
    const folder = await compiled(['fastify.mts'], 5, strict)
    const busy = ['200 false', '503 true']
    assert.deepEqual(await answersOf(join(folder, 'fastify.mjs')), [busy, busy, busy, 200, 'closed', 'function'])
  },
)
