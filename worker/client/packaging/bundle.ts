// Bundles the programs of the package: what applications install has BullMQ inside, and no
// dependencies.
import { readdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type BuildOptions, build, type Metafile, type OutputFile, type Plugin } from 'esbuild'
import published from './manifest.json' with { type: 'json' }
import { scripts, validators } from './ready-made.ts'

const clientDist = join(import.meta.dirname, '../dist')
const queueDist = join(import.meta.dirname, '../../queue/dist')
const workerDist = join(import.meta.dirname, '../../dist')

const common: BuildOptions = {
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  mainFields: ['module', 'main'],
  // A program that is loaded later is required: Jest takes no import() in CommonJS.
  supported: { 'dynamic-import': false },
  // In CommonJS `import.meta` is empty, and modules find files beside their own by it.
  define: { 'import.meta.url': '__moduleUrl' },
  // Nor is there a name of the file once a bundler has taken it into an ES module.
  banner: {
    js: "const __moduleUrl = require('node:url').pathToFileURL(typeof __filename === 'string' ? __filename : (process.argv[1] ?? 'any')).href",
  },
  legalComments: 'none',
  logLevel: 'error',
}

/** Installed with the package: a fix of ioredis must not wait for a version of ours. */
const dependencies = ['ioredis']
/** What the hashing process needs of these is installed with the package. */
const hashing = ['@node-rs/argon2', '@node-rs/bcrypt', 'argon2', 'bcrypt']
/** BullMQ does without these. */
const optional = ['msgpackr-extract', 'pg', 'redis']

/** What pages import: an ES module that needs no Node. */
export const pageDoor = 'browser'
/** What applications import: `@spillway/client` and `@spillway/client/<name>`. */
export const doors = Object.keys(published.typesVersions['*'])
  .filter((name) => name !== pageDoor)
  .concat('index')
const command = 'command'
/** The programs of doors, and what doors share: compiled files without their extension. */
const programs = [
  ...[...doors, 'application/create-passwords', 'shared-passwords', 'application/passwords-error'].map((name) =>
    join(clientDist, name),
  ),
  ...['queue-client', 'errors', 'wire/schema', 'redis/read-script'].map((name) => join(queueDist, name)),
]

/**
 * Objects to stub: what is required has plain properties, and the default export of a module is
 * what is required of it. Functions have their names, which a bundle changes where two of a file
 * are the same.
 */
const plainExports = `
{ const { default: all, ...named } = module.exports
  module.exports = all ?? named
  for (const [name, value] of Object.entries(module.exports))
    if (typeof value === 'function') Object.defineProperty(value, 'name', { value: name, configurable: true })
  for (const [name, value] of Object.entries({ __esModule: true, ...(all && { default: all }) }))
    Object.defineProperty(module.exports, name, { value, writable: true, configurable: true }) }`

/** A program that another one imports is required by it, instead of being bundled again. */
const apart: Plugin = {
  name: 'apart',
  setup({ onResolve }) {
    onResolve({ filter: /^(\.|@spillway\/queue\/)/ }, ({ path, resolveDir, kind }) => {
      const file = path.startsWith('.') ? join(resolveDir, path) : path.replace('@spillway/queue', queueDist)
      const name = file.replace(/\.js$/, '')
      const isProgram = kind !== 'entry-point' && programs.includes(name)
      return isProgram ? { path: `./${basename(name)}.cjs`, external: true } : undefined
    })
  },
}

/** Names stay, for stacks. */
const smaller = { minifyWhitespace: true, minifySyntax: true }

/** BullMQ is one program, which the queue's and the worker's share, with what they import of it. */
const fromBullmq = ['DelayedError', 'ErrorCode', 'Queue', 'UnrecoverableError', 'Worker']
const bullmq: Plugin = {
  name: 'bullmq',
  setup({ onResolve }) {
    onResolve({ filter: /^bullmq$/ }, () => ({ path: './bullmq.cjs', external: true }))
  },
}

/**
 * Writes the programs and returns what went into them. Doors are CommonJS, and ES modules that name
 * their exports: whichever way one is loaded, there is one of it.
 */
export async function bundle(outdir: string): Promise<Metafile[]> {
  const built = await Promise.all([
    bundlePageDoor(outdir),
    build({
      ...common,
      entryPoints: programs.map((file) => `${file}.js`),
      external: [...dependencies, ...optional, ...Object.keys(published.peerDependencies)],
      plugins: [apart, bullmq, scripts, validators],
      footer: { js: plainExports },
      outdir,
      entryNames: '[name]',
      outExtension: { '.js': '.cjs' },
      metafile: true,
      write: false,
    }),
    build({
      ...common,
      entryPoints: [
        { in: join(workerDist, 'beside.cjs'), out: 'hashing-program' },
        { in: join(workerDist, 'hashing-in-place.cjs'), out: 'hashing-in-place' },
      ],
      external: hashing,
      plugins: [validators],
      ...smaller,
      outdir,
      outExtension: { '.js': '.cjs' },
      metafile: true,
    }),
    build({
      ...common,
      entryPoints: [join(workerDist, 'command.cjs')],
      external: [...dependencies, ...optional, ...hashing],
      plugins: [bullmq, scripts, validators],
      ...smaller,
      outfile: join(outdir, `${command}.cjs`),
      metafile: true,
    }),
    build({
      ...common,
      stdin: { contents: `export { ${fromBullmq.join(', ')} } from 'bullmq'`, resolveDir: join(clientDist, '..') },
      external: [...dependencies, ...optional],
      ...smaller,
      outfile: join(outdir, 'bullmq.cjs'),
      metafile: true,
    }),
    // A thread of that process, which looks for it beside itself.
    build({
      ...common,
      entryPoints: [join(workerDist, 'hashing/methods/digest-program.js')],
      ...{ format: 'esm', banner: {}, define: {} },
      outfile: join(outdir, 'digest-program.js'),
      metafile: true,
    }),
  ])
  for (const file of built.flatMap(({ outputFiles = [] }) => outputFiles)) await writeFile(file.path, atOnce(file))
  for (const name of doors) await writeFile(join(outdir, `${name}.js`), await moduleOf(name))
  return built.map(({ metafile }) => metafile)
}

/** A program that is loaded later is required when it is asked for: see shared-passwords.ts. */
function atOnce({ text }: OutputFile): string {
  return (
    text
      .replaceAll(/Promise\.resolve\(\)\.then\(\(\) => (__toESM\(require\("[^"]+"\), 1\))\)/g, '(async () => $1)()')
      // Never called: tracers of files follow it.
      .replace(
        /^function findProgram\(\)/m,
        `const traced = () => require('node:fs').readFileSync(__dirname + '/${traced}')\n$&`,
      )
  )
}

/** Leads tracers of files, such as Next.js's, to all that the process beside loads. Never run. */
export const traced = 'traced.mjs'
export async function writeTraced(outdir: string): Promise<void> {
  const files = (await readdir(outdir)).filter((file) => file.endsWith('.node'))
  const urls = ['digest-program.js', ...files].map((file) => `new URL('./${file}', import.meta.url)`)
  await writeFile(join(outdir, traced), `import './hashing-program.cjs'\nexport default [${urls.join(', ')}]\n`)
}

/** Writes the door for pages: one small file that a browser loads as it is. */
export function bundlePageDoor(outdir: string) {
  return build({
    entryPoints: [join(clientDist, `${pageDoor}.js`)],
    bundle: true,
    platform: 'browser',
    target: 'es2022',
    format: 'esm',
    minify: true,
    logLevel: 'error',
    outdir,
    metafile: true,
  })
}

async function moduleOf(door: string): Promise<string> {
  const { default: all, ...named } = await import(join(clientDist, `${door}.js`))
  const lines = [`import door from './${door}.cjs'`, '', `export const { ${Object.keys(named).join(', ')} } = door`]
  return [...lines, ...(all === undefined ? [] : ['export default door.default']), ''].join('\n')
}

/** The folders of the packages that were bundled. */
export function bundledPackages(metafiles: readonly Metafile[]): string[] {
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs))
  const folders = inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  return [...new Set(folders)].sort()
}
