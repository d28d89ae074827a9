// Lines of a text that comes in chunks, with their numbers.

export interface TextLine {
  /** From 1. */
  number: number
  /** Without its end. */
  text: string
}

/** By line feeds, as all exports have them; a carriage return before one belongs to the end of the line. */
export async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<TextLine[]> {
  let rest = ''
  let number = 0
  for await (const chunk of chunks) {
    const texts = (rest + chunk).split('\n')
    rest = texts.pop() ?? ''
    yield texts.map((text) => ({ number: ++number, text: withoutReturn(text) }))
  }
  if (rest !== '') yield [{ number: number + 1, text: withoutReturn(rest) }]
}

function withoutReturn(text: string): string {
  return text.endsWith('\r') ? text.slice(0, -1) : text
}
