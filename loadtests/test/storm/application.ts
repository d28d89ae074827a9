// An application to storm, as many are: it hashes in its handlers, on libuv's thread pool. Its paths are the cases of the tests.
import { stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { hash, verify } from '@node-rs/bcrypt'
import { listening } from '@spillway/infra/processes/port'
import { SLOW_MS, TRIALS } from './storming.ts'

/** On the quickest of machines this takes tens of milliseconds. */
const COST = 10
const PASSWORD = process.env.PASSWORD ?? ''
/** The users have numbers up to this. */
const ACCOUNTS = Number(process.env.ACCOUNTS ?? 1_000)

const stored = await hash(PASSWORD, { cost: COST })
/** The requests by path, with when they came. */
const seen: Record<string, { body: string; cookie: string | undefined; atMs: number }[]> = {}
const times = (path: string) => seen[path]?.length ?? 0

type Handler = (response: ServerResponse, body: string) => unknown

const end = (status: number, headers: Record<string, string> = {}, body = ''): Handler => {
  return (response) => response.writeHead(status, headers).end(body)
}

/** Answers the trials well, and what comes later like this. */
const afterTrials = (path: string, handler: Handler): Handler => {
  return (response, body) => (times(path) <= TRIALS ? response.end() : handler(response, body))
}

/** Connections that have had an answer. */
const answered = new WeakSet<Socket>()

const handlers: Record<string, Handler> = {
  '/login': async (response, body) => {
    const { email, password } = JSON.parse(body)
    const number = Number(/^user(\d+)@example\.test$/.exec(email)?.[1])
    const isRight = (await verify(password, stored)) && number <= ACCOUNTS
    response.writeHead(isRight ? 200 : 401).end()
  },
  '/quick-login': end(302, { location: '/followed' }),
  '/busy-login': afterTrials('/busy-login', end(503, { 'retry-after': '1' })),
  '/accepted-login': afterTrials('/accepted-login', end(202, { 'retry-after': '1' })),
  '/silent-login': afterTrials('/silent-login', () => undefined),
  '/broken-login': afterTrials('/broken-login', end(500)),
  '/closed-login': afterTrials('/closed-login', (response) => response.destroy()),
  '/echoing-login': (response, body) =>
    response.writeHead(422).end(`no such user:\u001b[31m\n ${body} ${encodeURIComponent(body)}`),
  '/followed': end(200),
  // As a server that closes a kept connection just when it is used again.
  '/closed-when-reused': (response) => {
    const { socket } = response
    if (socket === null || answered.has(socket)) return socket?.destroy()
    answered.add(socket)
    return response.end()
  },
  '/plain': end(200),
  '/slow': async (response) => {
    await sleep(SLOW_MS)
    response.end()
  },
  '/fails-later': (response) => response.writeHead(times('/quick-login') > TRIALS ? 500 : 200).end(),
  '/not-there': end(404),
  '/file': async (response) => {
    await stat(import.meta.filename)
    response.end()
  },
  '/seen': (response) => response.end(JSON.stringify(seen)),
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url?.replace(/\?.*/, '') ?? ''
  const body = await text(request)
  seen[path] ??= []
  seen[path].push({ body, cookie: request.headers.cookie, atMs: performance.now() })
  await (handlers[path] ?? handlers['/not-there'])?.(response, body)
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.writeHead(500).end())
})
console.log(JSON.stringify({ msg: 'listening', port: await listening(server) }))
