// The declarations of the package: of its entry and what that names, for ES modules and for
// CommonJS.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'

/** Packages of this repository that have a folder in the package. */
const inside = /^@spillway\/(queue|common)\/(.+)$/

/**
 * Copies the declarations of `entry`, such as index.d.ts, with all that they import. Throws when
 * they import a package that is not in `peers`.
 */
export async function copyDeclarations(
  from: string,
  to: string,
  { entry, peers, forCommonJs = true }: { entry: string; peers: readonly string[]; forCommonJs?: boolean },
): Promise<void> {
  const copied = new Set<string>()

  /** Where a declaration of the package was built. */
  function builtFile(file: string): string {
    const [, name = '', path = ''] = /^(queue|common)\/(.+)$/.exec(file) ?? []
    return name === '' ? join(from, file) : join(from, '../..', name, 'dist', path)
  }

  async function copy(file: string): Promise<void> {
    if (copied.has(file)) return
    copied.add(file)
    const named: string[] = []
    const built = await readFile(builtFile(file), 'utf8')
    const text = built
      .replace(/^\/\/# sourceMappingURL=.*\n?/m, '')
      .replace(/((?:from |import\()['"])([^'"]+)/g, (_, before: string, specifier: string) => {
        const [, name, path] = inside.exec(specifier) ?? []
        const own = name === undefined ? undefined : posix.relative(posix.dirname(file), `${name}/${path}.js`)
        const written = own === undefined || own.startsWith('.') ? (own ?? specifier) : `./${own}`
        named.push(written)
        return before + written
      })
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
