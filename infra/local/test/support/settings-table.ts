// The tables of settings in the READMEs, made from the schemas of the configuration.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { fileVariable } from '@spillway/common/secrets'

interface Setting {
  readonly type: string
  readonly default?: string | number | boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly enum?: readonly string[]
  readonly description?: string
  readonly writeOnly?: boolean
}

interface Settings {
  readonly properties: Readonly<Record<string, Setting>>
  readonly required: readonly string[]
}

/**
 * Fails when the table of settings in a page differs from the schema. With
 * SPILLWAY_WRITE_PAGES=true it writes the table instead.
 */
export async function assertSettingsTable(page: URL, schema: Settings): Promise<void> {
  const text = await readFile(page, 'utf8')
  const current = withParts(text, { settings: settingsTable(schema) })
  if (process.env.SPILLWAY_WRITE_PAGES === 'true') await writeFile(page, current)
  else
    assert.equal(text, current, 'bring it up to date by: SPILLWAY_WRITE_PAGES=true npx --yes pnpm test settings-table')
}

function settingsTable({ properties, required }: Settings): string {
  const rows = Object.entries(properties).map(([name, setting]) => {
    assert.ok(setting.description, `${name} has no meaning`)
    const byDefault = required.includes(name) ? '**required**' : shown(setting.default)
    return `| \`${name}\` | ${byDefault} | ${boundsOf(name, setting)} | ${setting.description} |`
  })
  return ['| name | default | bounds | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

function shown(value: Setting['default']): string {
  return value === undefined || value === '' ? '' : `\`${value}\``
}

function boundsOf(name: string, { type, minimum, maximum, enum: words, writeOnly }: Setting): string {
  if (writeOnly) return `or \`${fileVariable(name)}\``
  if (words !== undefined) return words.map((word) => `\`${word}\``).join(', ')
  if (type === 'boolean') return '`true`, `false`'
  if (minimum === undefined || maximum === undefined) return ''
  return maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `${minimum} to ${maximum}`
}

/** The page with these parts replaced. Throws where the page has no place for a part. */
export function withParts(page: string, parts: Record<string, string>): string {
  return Object.entries(parts).reduce((text, [name, part]) => {
    const [start, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
    const [before, after] = [text.indexOf(start), text.indexOf(end)]
    if (before < 0 || after < before) throw new Error(`the page has no place for ${start} ... ${end}`)
    return `${text.slice(0, before + start.length)}\n${part}\n${text.slice(after)}`
  }, page)
}
