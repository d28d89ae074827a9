// Pictures of pages, as READMEs show them: each is kept with a digest of the sources of its page,
// so that a test notices an old one.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { repositoryDir } from '../../src/processes/repository.ts'
import { onPath } from '../../src/processes/run.ts'

const livePage = ['live.css', 'live.js', 'page.html'].map((name) => `api/src/operators/page/${name}`)
const audit = ['audit.html', 'audit.js', 'live.css'].map((name) => `api/src/operators/page/${name}`)
const board = ['api/src/operators/board.ts', 'api/src/operators/board-words.ts', 'npm:@bull-board/ui']
const waitingRoom = ['index.html', 'waiting-room.css', 'waiting-room.js', 'words.js'].map(
  (name) => `worker/client/examples/waiting-room/${name}`,
)

/** The sources of each pictured page: files, folders, and locked versions of packages. */
export const pictures: Readonly<Record<string, readonly string[]>> = {
  'infra/grafana/screenshots/live-spike.png': livePage,
  'infra/grafana/screenshots/live-phone-dark.png': livePage,
  'infra/grafana/screenshots/audit.png': audit,
  'infra/grafana/screenshots/board-waiting.png': board,
  'infra/grafana/screenshots/board-completed.png': board,
  'infra/grafana/screenshots/board-failed.png': board,
  'infra/grafana/screenshots/board-retry-refused.png': board,
  'infra/grafana/screenshots/board-locked-out.png': ['api/src/operators/access.ts'],
  'worker/client/examples/waiting-room/waiting-room.png': waitingRoom,
  'worker/client/examples/waiting-room/waiting-room-phone-dark.png': waitingRoom,
}

/** Whether this run is to take pictures. */
export const takesPictures = process.env.SPILLWAY_SCREENSHOTS === 'true'

interface Pictured {
  screenshot(options: { path: string; animations: 'disabled' }): Promise<unknown>
}

/** Takes the picture of a page in place of the present one, where this run takes pictures. */
export async function takePicture(page: Pictured, name: string): Promise<void> {
  if (!takesPictures) return
  const picture = Object.keys(pictures).find((path) => basename(path) === `${name}.png`)
  if (picture === undefined) throw new Error(`${name} is no picture of pictures.ts`)
  await page.screenshot({ path: join(repositoryDir, picture), animations: 'disabled' })
  const digests = { ...(await digestsBeside(picture)), [basename(picture)]: sourceDigest(picture) }
  const sorted = Object.fromEntries(Object.entries(digests).sort(([a], [b]) => (a < b ? -1 : 1)))
  await writeFile(digestFile(picture), `${JSON.stringify(sorted, undefined, 2)}\n`)
}

/** The digests with which the pictures of a folder were taken, by file. */
export async function digestsBeside(picture: string): Promise<Record<string, string>> {
  return JSON.parse(await readFile(digestFile(picture), 'utf8').catch(() => '{}'))
}

/** SHA-256 of what the page of a picture is made of today. */
export function sourceDigest(picture: string): string {
  const hash = createHash('sha256')
  for (const source of pictures[picture] ?? []) {
    for (const [name, content] of contentsOf(source)) hash.update(`${name}\0${content}\0`)
  }
  return hash.digest('hex')
}

function digestFile(picture: string): string {
  return join(repositoryDir, dirname(picture), 'pictures.json')
}

function contentsOf(source: string): [name: string, content: string][] {
  const [, packageName] = /^npm:(.*)$/.exec(source) ?? []
  if (packageName !== undefined) {
    const lockfile = readFileSync(join(repositoryDir, 'pnpm-lock.yaml'), 'utf8')
    const version = lockfile.split('\n').find((line) => line.startsWith(`  '${packageName}@`))
    return [[packageName, version ?? 'not locked']]
  }
  const path = join(repositoryDir, source)
  if (!statSync(path).isDirectory()) return [[basename(source), drawing(readFileSync(path, 'utf8'))]]
  return readdirSync(path)
    .sort()
    .flatMap((name) => contentsOf(join(source, name)))
}

/** Comments, and where something is imported from, show on no picture. */
function drawing(text: string): string {
  return text.replaceAll(/^\s*(\/\/|\/\*\*|\*).*\n|^import (?:[^']*? from )?'.*\n/gm, '')
}

/** The Chromium that tests drive, if this machine has one. */
const program = onPath(['chromium', 'chromium-browser', 'google-chrome'])

/** Why tests that need it are skipped, or false. */
export const skipWithoutChromium = program === undefined ? 'there is no Chromium on the PATH' : false

/** How playwright-core launches it. Root, as in many containers, cannot have its sandbox. */
export const chromiumOptions = { executablePath: program ?? '', args: ['--no-sandbox'] }
