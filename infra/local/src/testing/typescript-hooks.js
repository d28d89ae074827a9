// How TypeScript is found and transpiled: once, and kept in the ignored folder for all processes to come.
// @ts-check
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
const keptDir = new URL('../../../../.spillway/transpiled/', import.meta.url)

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
  return next(isSource ? source : specifier, context)
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
  const kept = new URL(`${hash(url)}.js`, keptDir)
  // At its end, so that what is half written does not count.
  const mark = `\n//${hash(text)}`
  const known = existsSync(kept) ? readFileSync(kept, 'utf8') : ''
  if (known.endsWith(mark)) return known
  /** @type {typeof import('esbuild')} */
  const { transformSync } = require('esbuild')
  const { code } = transformSync(text, {
    loader: 'ts',
    target: 'node20',
    sourcemap: 'inline',
    sourcefile: fileURLToPath(url),
  })
  mkdirSync(keptDir, { recursive: true })
  writeFileSync(kept, code + mark)
  return code
}

/** @param {string} text */
function hash(text) {
  return createHash('sha256').update(text).digest('hex')
}
