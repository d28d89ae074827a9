// Serves the waiting room on this machine: node serve.mjs [--gateway URL] [--port N]. The gateway needs SESSION_COOKIE=true, and
// its CORS_ORIGINS must name the origin of the page.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname } from 'node:path'
import { parseArgs } from 'node:util'

const GATEWAY = 'http://127.0.0.1:3000'
const { values } = parseArgs({
  options: { gateway: { type: 'string', default: GATEWAY }, port: { type: 'string', default: '8080' } },
})
/** The client is what `pnpm start` or `pnpm build` has compiled. */
const files = {
  '/': 'index.html',
  '/waiting-room.css': 'waiting-room.css',
  '/waiting-room.js': 'waiting-room.js',
  '/follow.js': '../../dist/follow.js',
}
const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' }

const server = createServer(async ({ url = '/' }, response) => {
  const file = files[url]
  if (file === undefined) return response.writeHead(404).end()
  const text = await readFile(new URL(file, import.meta.url), 'utf8')
  response.writeHead(200, { 'content-type': `${types[extname(file)]}; charset=utf-8`, 'cache-control': 'no-cache' })
  response.end(text.replace(`content="${GATEWAY}"`, () => `content="${values.gateway}"`))
})
server.listen(Number(values.port), '127.0.0.1', () => {
  console.log(`The waiting room of ${values.gateway}: http://127.0.0.1:${server.address().port}`)
})
