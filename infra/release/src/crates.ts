// Prints the crates that are linked into the native engine: as JSON, for the bill of materials, or with --licences their licences as one
// text, which has to be passed on with it. Expects cargo.
import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

const engine = join(import.meta.dirname, '../../../worker/engine')
const locked = ['--locked', '--features', 'addon']

interface Crate {
  name: string
  version: string
  license: string
  manifest_path: string
}

function cargo(args: string[]): string {
  return execFileSync('cargo', args, { cwd: engine, encoding: 'utf8', maxBuffer: 2 ** 26 })
}

function linkedCrates(): Crate[] {
  const tree = cargo(['tree', ...locked, '--edges', 'normal,no-proc-macro', '--prefix', 'none', '--format', '{p}'])
  const linked = new Set([...tree.matchAll(/^(\S+) v(\S+)$/gm)].map(([, name, version]) => `${name} ${version}`))
  const { packages }: { packages: Crate[] } = JSON.parse(cargo(['metadata', ...locked, '--format-version', '1']))
  return packages.filter(({ name, version }) => linked.has(`${name} ${version}`))
}

/** Of several licences one may be chosen. Throws for a crate that brings no licence and has another than MIT. */
async function licenceOf({ name, version, license, manifest_path }: Crate): Promise<string> {
  const folder = dirname(manifest_path)
  const files = (await readdir(folder)).filter((entry) => /^(licen[cs]e|copying)/i.test(entry))
  const file = files.find((entry) => /mit/i.test(entry)) ?? files[0]
  if (file === undefined && !/\bMIT\b/.test(license)) throw new Error(`${name} brings no licence`)
  const text = file === undefined ? 'Licensed MIT.' : (await readFile(join(folder, file), 'utf8')).trim()
  return `${name} ${version}\n\n${text}\n`
}

const crates = linkedCrates()
if (process.argv.includes('--licences')) {
  const texts = await Promise.all(crates.map(licenceOf))
  process.stdout.write(`The engine contains these crates.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`)
} else {
  const described = crates.map(({ name, version, license }) => {
    return { name, version, license, purl: `pkg:cargo/${name}@${version}` }
  })
  process.stdout.write(JSON.stringify(described))
}
