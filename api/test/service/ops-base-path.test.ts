// The ops pages at a path of a reverse proxy: every link and request leads back through it.
import assert from 'node:assert/strict'
import { createServer, request as forward } from 'node:http'
import { listening } from '@spillway/infra/processes/port'
import { test } from 'vitest'
import { readGatewayConfig } from '../../src/config.ts'
import { fetchPatiently } from '../client.ts'
import { openSystem } from '../system.ts'

const OPERATOR = { OPS_USER: 'operator', OPS_PASSWORD: 'a password for operators' }
const headers = { authorization: `Basic ${btoa(`${OPERATOR.OPS_USER}:${OPERATOR.OPS_PASSWORD}`)}` }

const system = await openSystem()
const { opsUrl } = await system.gateway({ ...OPERATOR, OPS_BASE_PATH: '/internal/ops' })

/** A proxy that has the ops port at a path. As nginx with `proxy_pass` it strips it, or not. */
async function startReverseProxy(path: string, strips: boolean) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const { url = '', method, headers } = request
    asked.push(url)
    if (!url.startsWith(`${path}/`)) return void response.writeHead(404).end()
    const upstream = forward(
      { ...addressOf(opsUrl), path: strips ? url.slice(path.length) : url, method, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    request.pipe(upstream)
  })
  const port = await listening(server)
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${port}${path}`, asked, close }
}

function addressOf(url: string): { host: string; port: string } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port }
}

/** Where a page leads, as browsers resolve it, without Bull Board's fonts, which are blocked */
function linksOf(page: string, address: string): string[] {
  const base = new URL(/<base href="([^"]*)"/.exec(page)?.[1] ?? '', address)
  const links = [...page.matchAll(/<(?!base)[^>]*?(?:href|src)="([^"]*)"/g)].map(([, link = '']) => link)
  return links.filter((link) => !/^(data:|https:\/\/fonts\.)/.test(link)).map((link) => new URL(link, base).href)
}

for (const strips of [true, false]) {
  test(`behind a proxy that ${strips ? 'strips' : 'passes on'} the path, no page leads elsewhere`, async (t) => {
    const proxy = await startReverseProxy('/internal/ops', strips)
    t.onTestFinished(proxy.close)
    const get = async (url: string) => {
      const response = await fetchPatiently(url, { headers })
      return { status: response.status, text: await response.text() }
    }
    for (const path of ['/', '/queues', '/queues/queue/passwords']) {
      const address = proxy.url + path
      const page = await get(address)
      assert.equal(page.status, 200, path)
      const links = linksOf(page.text, address)
      assert.ok(links.length >= 3, `${path}: ${links}`)
      for (const link of links) {
        assert.ok(link.startsWith(`${proxy.url}/`), `${path} leads to ${link}`)
        assert.equal((await get(link)).status, 200, link)
      }
    }
    const board = await get(`${proxy.url}/queues`)
    assert.match(board.text, /<base href="\/internal\/ops\/queues\/"/)
    assert.match(board.text, /"url":"\/internal\/ops\/metrics"/)
    for (const path of [
      '/live.json',
      '/metrics',
      '/audit',
      '/audit?limit=1',
      '/queues/api/queues?activeQueue=passwords',
    ])
      assert.equal((await get(proxy.url + path)).status, 200, path)
    const paused = await fetchPatiently(`${proxy.url}/queues/api/queues/passwords/pause`, { method: 'PUT', headers })
    assert.equal(paused.status, 200)
    await fetchPatiently(`${proxy.url}/queues/api/queues/passwords/resume`, { method: 'PUT', headers })
    // The script of the live page asks below the base of the page.
    assert.match((await get(`${proxy.url}/live.js`)).text, /new URL\('live\.json', document\.baseURI\)/)
  })
}

test('probes and Prometheus go on without the path, and what only begins like it is another', async () => {
  for (const path of ['/metrics', '/internal/ops/metrics', '/internal/ops', '/internal/ops?x', '/'])
    assert.equal((await fetchPatiently(opsUrl + path, { headers })).status, 200, path)
  for (const path of ['/internal/opsmetrics', '/internal', '/internal/ops/internal/ops/metrics', '/ops/metrics'])
    assert.equal((await fetch(opsUrl + path, { headers })).status, 404, path)
  assert.equal((await fetch(`${opsUrl}/internal/ops/live.json`)).status, 401)
})

test('a path that no page can have is refused at the start', () => {
  for (const path of ['ops', '/ops/', '/', '/o"ps', '/ops?x', '/ops/../x y', 'https://x.test/ops'])
    assert.throws(() => readGatewayConfig({ ...system.environment, OPS_BASE_PATH: path }), /OPS_BASE_PATH/, path)
})
