// Serves the waiting room on this machine: node serve.mjs [--gateway URL] [--port N]. The gateway needs SESSION_COOKIE=true, and
// its CORS_ORIGINS must name the origin of the page.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = fileURLToPath(new URL('.', import.meta.url))
const GATEWAY = 'http://127.0.0.1:3000'
const { values } = parseArgs({
  options: {
    gateway: { type: 'string', default: GATEWAY },
    port: { type: 'string', default: '8080' },
    /** The folder with browser.js: what `pnpm start` or `pnpm build` has compiled. */
    client: { type: 'string', default: join(here, '../../dist') },
  },
})
const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' }
const pages = ['/index.html', '/waiting-room.css', '/waiting-room.js', '/words.js']
/** Of the client nothing but what is for pages. */
const isModule = /^\/spillway\/(browser(?:\/[a-z-]+)?\.js)$/

const server = createServer(async ({ url = '/' }, response) => {
  const { pathname } = new URL(url, GATEWAY)
  const [, module] = isModule.exec(pathname) ?? []
  const page = pathname === '/' ? '/index.html' : pathname
  const file = module === undefined ? pages.includes(page) && join(here, page) : join(values.client, module)
  try {
    const text = await readFile(file, 'utf8')
    response.writeHead(200, { 'content-type': `${types[extname(file)]}; charset=utf-8`, 'cache-control': 'no-cache' })
    response.end(text.replace(`content="${GATEWAY}"`, () => `content="${values.gateway}"`))
  } catch {
    response.writeHead(404).end()
  }
})
server.listen(Number(values.port), '127.0.0.1', () => {
  console.log(`The waiting room of ${values.gateway}: http://127.0.0.1:${server.address().port}`)
})
