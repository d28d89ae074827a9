// Files of other folders that the chart carries a copy of: Helm reads none beyond the chart's own.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chartDir } from './chart.ts'

const infraDir = fileURLToPath(new URL('../..', import.meta.url))

/** Folders of the chart, and the folder that each is a copy of. */
const copies = {
  'files/alerts': 'alerts/rules',
  'files/dashboards': 'grafana/dashboards',
}

export type Files = Map<string, string>

/** What the chart should carry, by the path within it. */
export async function sourceFiles(): Promise<Files> {
  const all = await Promise.all(
    Object.entries(copies).map(([copy, source]) => readFolder(join(infraDir, source), copy)),
  )
  return new Map(all.flatMap((files) => [...files]))
}

/** What the chart carries. */
export async function carriedFiles(): Promise<Files> {
  const all = await Promise.all(Object.keys(copies).map((copy) => readFolder(join(chartDir, copy), copy)))
  return new Map(all.flatMap((files) => [...files]))
}

/** Copies anew, so that what is gone at the source is gone from the chart. */
export async function writeCarriedFiles(): Promise<void> {
  for (const copy of Object.keys(copies)) await rm(join(chartDir, copy), { recursive: true, force: true })
  for (const [path, content] of await sourceFiles()) {
    await mkdir(dirname(join(chartDir, path)), { recursive: true })
    await writeFile(join(chartDir, path), content)
  }
}

/** The files of a folder, under the name that it has in the chart. */
async function readFolder(dir: string, name: string): Promise<Files> {
  const files: Files = new Map()
  for (const file of (await readdir(dir)).sort()) files.set(`${name}/${file}`, await readFile(join(dir, file), 'utf8'))
  return files
}
