// Parts of a page that a program writes, each between <!-- name --> and <!-- /name -->.

/** The page with these parts in place of the present ones. Throws where the page has no place for one. */
export function withParts(page: string, parts: Record<string, string>): string {
  return Object.entries(parts).reduce((text, [name, part]) => {
    const [start, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
    const [before, after] = [text.indexOf(start), text.indexOf(end)]
    if (before < 0 || after < before) throw new Error(`the page has no place for ${start} ... ${end}`)
    return `${text.slice(0, before + start.length)}\n${part}\n${text.slice(after)}`
  }, page)
}
