/** The runbooks of infra/grafana/ALERTS.md at `/runbooks` of the ops port, a section for each alert. */
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'

/** The same path from src/ and from dist/, and in the gateway's image. */
const file = new URL('../../../infra/grafana/ALERTS.md', import.meta.url)

export async function runbooksPlugin(app: FastifyInstance, { basePath }: { basePath: string }): Promise<void> {
  let page: Promise<string> | undefined
  app.get('/runbooks', async (_request, reply) => {
    page ??= renderPage(basePath)
    return reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(await page)
  })
}

/** Loads the parser with the first reader: a start without one is faster. */
async function renderPage(basePath: string): Promise<string> {
  const { Marked } = await import('marked')
  const markdown = new Marked({
    renderer: {
      // Titles are anchors.
      heading({ tokens, depth, text }) {
        const id = text.toLowerCase().replaceAll(' ', '-')
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      // Other files of the repository are not here: their links are words alone.
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens)
        return href.startsWith('#') ? `<a href="runbooks${href}">${words}</a>` : words
      },
    },
  })
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Runbooks · Spillway</title>
    <base href="${basePath}/" />
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="live.css" />
    <style>
      h2 { margin-top: 2rem; font: 600 1.3rem system-ui; color: inherit }
      p, li { display: revert; margin-block: 0.6rem; font: inherit; color: inherit }
      strong { color: inherit }
      :is(th, td):nth-child(n) { text-align: left; vertical-align: top; white-space: normal }
      pre { white-space: pre-wrap }
    </style>
  </head>
  <body>
    <header><nav><a href="${basePath}/">Live</a></nav></header>
    <main class="card" tabindex="0">${await markdown.parse(await readFile(file, 'utf8'))}</main>
  </body>
</html>`
}
