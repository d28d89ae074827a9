// The package in bundles and in traced files: its program is found, or the error names what to set.
import assert from 'node:assert/strict'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'vitest'
import { env, install, run, skip } from '../installed.ts'

const bundlers = [
  ...['esbuild@0.28.2', 'webpack@5.112.2', 'webpack-cli@7.3.1', 'rolldown@1.3.2', 'vite@8.3.8'],
  ...['@vercel/ncc@0.45.0', '@vercel/nft@1.11.5', '@rspack/core@2.3.3', '@rspack/cli@2.2.8', 'rollup@4.68.8'],
  ...['node-resolve@16.0.3', 'commonjs@29.0.3', 'json@6.1.0'].map((name) => `@rollup/plugin-${name}`),
]
const { application, answersOf } = await install(bundlers)

const program = `
import bcrypt from '@spillway/client/bcrypt'
async function main() {
  const stored = await bcrypt.hash('right', 5)
  console.log(JSON.stringify([stored.slice(0, 7), await bcrypt.compare('right', stored), await bcrypt.compare('wrong', stored)]))
}
void main()`
const answers = ['$2b$05$', true, false]
const wait = { SPILLWAY_WAIT_MS: '60000' }

const files = {
  'main.mjs': program,
  'rollup.config.mjs': `
import resolve from '@rollup/plugin-node-resolve'
import commonjs from '@rollup/plugin-commonjs'
import json from '@rollup/plugin-json'
const plugins = [resolve({ exportConditions: ['node'] }), commonjs({ ignoreDynamicRequires: true }), json()]
export default { input: 'main.mjs', plugins, output: { file: 'rollup/main.mjs', inlineDynamicImports: true } }`,
  'rspack.config.mjs': `
const output = { path: import.meta.dirname + '/rspack', filename: 'main.cjs' }
export default { mode: 'none', target: 'node', entry: './main.mjs', output }`,
  'vite.config.mjs': `export default { build: { ssr: 'main.mjs', outDir: 'vite' }, ssr: { noExternal: true } }`,
  'trace.mjs': `
import { nodeFileTrace } from '@vercel/nft'
const { fileList } = await nodeFileTrace(['main.mjs'])
console.log(JSON.stringify([...fileList]))`,
}
if (skip === false) for (const [name, text] of Object.entries(files)) await writeFile(join(application, name), text)

const cli = (name: string, ...args: string[]) =>
  run(join(application, 'node_modules/.bin', name), args, { cwd: application, env, timeout: 240_000 })
const webpack = '--mode none --target node --entry ./main.mjs -o webpack --output-filename main.cjs'.split(' ')
const esbuild = ['main.mjs', '--bundle', '--platform=node', '--log-level=error']

test.skipIf(skip).for([
  ['esbuild, CommonJS', 'esbuild.cjs', ['esbuild', ...esbuild, '--outfile=esbuild.cjs']],
  [
    'esbuild, ES module',
    'esbuild.mjs',
    ['esbuild', ...esbuild, '--format=esm', '--external:@spillway/client', '--outfile=esbuild.mjs'],
  ],
  ['webpack', 'webpack/main.cjs', ['webpack', ...webpack]],
  ['rspack', 'rspack/main.cjs', ['rspack', 'build']],
  ['rolldown', 'rolldown/main.mjs', ['rolldown', 'main.mjs', '--platform', 'node', '--file', 'rolldown/main.mjs']],
  ['rollup', 'rollup/main.mjs', ['rollup', '-c', '--silent']],
  ['vite', 'vite/main.js', ['vite', 'build']],
  ['ncc', 'ncc/index.mjs', ['ncc', 'build', 'main.mjs', '-o', 'ncc']],
] as const)('%s: a bundle finds the program in the package as it is installed', async ([, output, [name, ...args]]) => {
  await cli(name, ...args)
  assert.deepEqual(await answersOf(join(application, output), wait), answers)
})

test.skipIf(skip)('the files that a tracer takes are enough', async () => {
  const { stdout } = await run(process.execPath, ['trace.mjs'], { cwd: application, env })
  const traced: string[] = JSON.parse(stdout)
  const folder = join(dirname(application), 'traced')
  for (const file of traced) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await copyFile(join(application, file), join(folder, file))
  }
  assert.deepEqual(await answersOf(join(folder, 'main.mjs'), wait), answers)
})

test.skipIf(skip)('a bundle without the package beside it says what to set', async () => {
  const away = join(dirname(application), 'away')
  await mkdir(away)
  await cli('esbuild', ...esbuild, `--outfile=${join(away, 'main.cjs')}`)
  const call = run(process.execPath, ['main.cjs'], { cwd: away, env })
  await assert.rejects(call, /a bundler took @spillway\/client in.*external.*serverExternalPackages/)
})
