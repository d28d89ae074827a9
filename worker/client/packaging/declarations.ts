// The declarations of the package: of its entry and what that names, for ES modules and for
// CommonJS.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'

/** Copies an entry's declarations with all that they import. Throws for packages not in `peers`. */
export async function copyDeclarations(
  from: string,
  to: string,
  { entry, peers, forCommonJs = true }: { entry: string; peers: readonly string[]; forCommonJs?: boolean },
): Promise<void> {
  const copied = new Set<string>()

  async function copy(file: string): Promise<void> {
    if (copied.has(file)) return
    copied.add(file)
    const built = await readFile(join(from, file), 'utf8')
    const text = built.replace(/^\/\/# sourceMappingURL=.*\n?/m, '')
    const named = [...text.matchAll(/(?:from |import\()['"]([^'"]+)/g)].map(([, specifier = '']) => specifier)
    const foreign = named.find((specifier) => !specifier.startsWith('.') && !peers.includes(specifier))
    if (foreign !== undefined) throw new Error(`${file} imports ${foreign}: its types would be any to applications`)
    await mkdir(dirname(join(to, file)), { recursive: true })
    await writeFile(join(to, file), text)
    if (forCommonJs) {
      const renamed = text.replace(/(['"])(\.[^'"]+)\.js\1/g, '$1$2.cjs$1')
      await writeFile(join(to, file.replace(/\.d\.ts$/, '.d.cts')), renamed)
    }
    for (const specifier of named.filter((each) => each.startsWith('.')))
      await copy(posix.join(posix.dirname(file), specifier.replace(/\.js$/, '.d.ts')))
  }

  await copy(entry)
}
