// The pages: the first one is short, each room has one, links lead somewhere, pictures are of today.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'vitest'
import { repositoryDir } from '../../src/processes/repository.ts'
import { digestsBeside, pictures, sourceDigest } from '../support/pictures.ts'

const page = (path: string) => readFileSync(join(repositoryDir, path), 'utf8')
const tracked = (...patterns: string[]) =>
  execFileSync('git', ['ls-files', ...patterns], { cwd: repositoryDir, encoding: 'utf8' })
    .trim()
    .split('\n')
const pages = tracked('*.md')

test('the first page has at most 150 lines and 1,200 words, and begins with what to type', () => {
  const text = page('README.md')
  assert.ok(text.split('\n').length <= 151, `${text.split('\n').length - 1} lines`)
  assert.ok(words(text) <= 1_200, `${words(text)} words`)
  const [first = ''] = /^```.*?^```/ms.exec(text) ?? []
  assert.deepEqual(first.match(/^npx --yes pnpm \w+/gm), ['npx --yes pnpm start', 'npx --yes pnpm test'])
})

test('every room has a page', () => {
  const rooms = ['api', 'worker', 'worker/client', 'worker/engine', 'prisma', 'loadtests', 'loadtests/chaos']
  const infra = ['accounts', 'docker', 'grafana', 'helm/spillway', 'keda', 'local', 'release', 'sizing']
  for (const room of [...rooms, ...infra.map((name) => `infra/${name}`)])
    assert.ok(pages.includes(`${room}/README.md`), room)
})

test('every link of a page leads to a file, and to a heading that is there', () => {
  const broken: string[] = []
  for (const path of pages) {
    for (const [, target = ''] of page(path).matchAll(/(?:\]\(|src=")(?!https?:|mailto:)([^)"\s]+)[)"]/g)) {
      const [file = '', heading] = target.split('#')
      const linked = file === '' ? path : join(dirname(path), file)
      if (!existsSync(join(repositoryDir, linked))) broken.push(`${path}: ${target}`)
      else if (heading !== undefined && linked.endsWith('.md') && !anchors(page(linked)).has(heading))
        broken.push(`${path}: ${target}`)
    }
  }
  assert.deepEqual(broken, [])
})

test('nothing sends anyone to a name in a registry that nobody holds', () => {
  const files = tracked('*.md', '*.ts', '*.cts', '*.mjs').filter((path) => existsSync(join(repositoryDir, path)))
  const unheld =
    /npx (--yes )?@?spillway|npm(js\.com\/package| view| info)[ /]@?spillway|(npm i(nstall)?|add) (-\S+ )*@spillway\//
  const own = 'infra/local/test/unit/pages.test.ts'
  assert.deepEqual(
    files.filter((path) => path !== own && unheld.test(page(path))),
    [],
  )
})

test('every picture has the sources of its page, and every page its picture', () => {
  assert.deepEqual(Object.keys(pictures).sort(), tracked('*.png').sort())
})

test.for(Object.keys(pictures))('%s was taken of the page as it is now', async (picture) => {
  const digests = await digestsBeside(picture)
  assert.equal(
    digests[basename(picture)],
    sourceDigest(picture),
    'take it anew: npx --yes pnpm --filter @spillway/infra pictures, with Chromium on the PATH',
  )
})

/** As `wc -w` counts. */
function words(text: string): number {
  return text.split(/\s+/).filter(Boolean).length
}

/** The headings of a page as GitHub links to them. */
function anchors(text: string): Set<string> {
  const headings = text.replaceAll(/^```.*?^```/gms, '').matchAll(/^#+ (.*)$/gm)
  return new Set(
    Array.from(headings, ([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}
