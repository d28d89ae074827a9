// The change from before to after: README.md shows it, and what is shown is applied.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { recipesDir } from './recipes.ts'

/**
 * Applies what README.md says of a recipe to a copy of it. Of each file (`--- express/app.js`) it has the lines that go (`-`), that come (`+`)
 * and that stay between them, `@@` between places. Throws for lines that are not there exactly once.
 */
export async function applyChange(recipe: string, folder: string): Promise<void> {
  const readme = await readFile(join(recipesDir, 'README.md'), 'utf8')
  const diffs = [...readme.matchAll(/^```diff\n(.*?)^```$/gms)].map(([, diff = '']) => diff)
  const files = diffs.flatMap((diff) => diff.split(/^--- /m)).filter((part) => part.startsWith(`${recipe}/`))
  if (files.length === 0) throw new Error(`README.md shows no change of ${recipe}`)
  for (const part of files) {
    const [name = '', ...lines] = part.trimEnd().split('\n')
    const file = join(folder, name.slice(recipe.length + 1))
    await writeFile(file, changed(await readFile(file, 'utf8'), lines.join('\n').split(/^@@\n/m), name))
  }
}

function changed(text: string, places: readonly string[], name: string): string {
  return places.reduce((current, place) => {
    const parts = current.split(side(place, '-'))
    if (parts.length !== 2) throw new Error(`README.md changes what is not in ${name} exactly once:\n${place}`)
    return parts.join(side(place, '+'))
  }, text)
}

/** The lines of one side, and those of both. */
function side(place: string, sign: '-' | '+'): string {
  const lines = place.trimEnd().split('\n')
  const kept = lines.filter((line) => line.startsWith(sign) || line.startsWith(' ') || line === '')
  return kept.map((line) => `${line.slice(1)}\n`).join('')
}
