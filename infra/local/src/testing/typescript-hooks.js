// How TypeScript is found and transpiled: once, and kept in the ignored folder for all processes to come.
// @ts-check
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { threadId } from 'node:worker_threads'

const require = createRequire(import.meta.url)
const repository = new URL('../../../../', import.meta.url)
const keptDir = new URL('.spillway/transpiled/', repository)
/** @type {{ version: string }} */
const { version } = require('esbuild/package.json')
/** @type {import('esbuild').TransformOptions} */
const options = { loader: 'ts', target: 'node20', sourcemap: 'inline' }

/**
 * @template T
 * @param {string} specifier
 * @param {import('node:module').ResolveHookContext} context
 * @param {(specifier: string, context: import('node:module').ResolveHookContext) => T} next
 */
export function resolve(specifier, context, next) {
  // Compiled packages name their modules as they will be: x.js, whose source is x.ts.
  const source = specifier.replace(/^(\..*)\.js$/, '$1.ts')
  const isSource = context.parentURL?.endsWith('.ts') && existsSync(new URL(source, context.parentURL))
  return next(isSource ? source : threadSource(specifier), context)
}

/**
 * The source of the program of a thread, which is named as it will be compiled too.
 * @param {string} specifier
 */
function threadSource(specifier) {
  if (!specifier.startsWith('file:') || !specifier.endsWith('.js') || existsSync(new URL(specifier))) return specifier
  const source = specifier.replace(/\.js$/, '.ts')
  return existsSync(new URL(source)) ? source : specifier
}

/**
 * @template T
 * @param {string} url
 * @param {import('node:module').LoadHookContext} context
 * @param {(url: string, context: import('node:module').LoadHookContext) => T} next
 */
export function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  return { format: 'module', source: transpiled(url), shortCircuit: true }
}

/** @param {string} url */
function transpiled(url) {
  const text = readFileSync(new URL(url), 'utf8')
  // Files of tests in temporary folders are not kept.
  if (!url.startsWith(repository.href)) return transpile(text, url)
  const kept = new URL(`${hash(url)}.js`, keptDir)
  const mark = `\n//${hash(text + version + JSON.stringify(options))}`
  const known = existsSync(kept) ? readFileSync(kept, 'utf8') : ''
  if (known.endsWith(mark)) return known
  const code = transpile(text, url)
  const partial = new URL(`${kept.href}.${process.pid}.${threadId}`)
  mkdirSync(keptDir, { recursive: true })
  writeFileSync(partial, code + mark)
  // Several processes may do this at once.
  renameSync(partial, kept)
  return code
}

/**
 * @param {string} text
 * @param {string} url
 */
function transpile(text, url) {
  /** @type {typeof import('esbuild')} */
  const { transformSync } = require('esbuild')
  return transformSync(text, { ...options, sourcefile: fileURLToPath(url) }).code
}

/** @param {string} text */
function hash(text) {
  return createHash('sha256').update(text).digest('hex')
}
