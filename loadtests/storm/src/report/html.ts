// HTML in template literals: what is put in is escaped, unless it is HTML itself.

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Content = Html | string | number | undefined | readonly Content[]

/** `undefined` becomes nothing, a list its parts one after the other. */
export function html(strings: TemplateStringsArray, ...contents: Content[]): Html {
  return new Html(strings.map((text, index) => text + render(contents[index])).join(''))
}

function render(content: Content): string {
  if (content === undefined) return ''
  if (content instanceof Html) return content.text
  if (typeof content === 'object') return content.map(render).join('')
  return String(content).replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)
}
