// Named steps, each reported with its time as it ends.

export class Steps {
  readonly results: { name: string; seconds: number; note: string | undefined }[] = []
  readonly #say: (line: string) => void
  #fail: (error: Error) => void = () => {}
  readonly #failed = new Promise<never>((_resolve, reject) => {
    this.#fail = reject
  })

  constructor(say: (line: string) => void) {
    this.#say = say
    this.#failed.catch(() => undefined)
  }

  /** Ends the current step, or the next one, with this error. */
  fail(error: Error): void {
    this.#fail(error)
  }

  /**
   * Runs a step and resolves to its result, which is reported with its name if it is a text.
   * Rejects as the step does.
   */
  async step<T>(name: string, run: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    const seconds = (): number => Math.round((performance.now() - startedAt) / 100) / 10
    try {
      const result = await Promise.race([run(), this.#failed])
      const note = typeof result === 'string' ? result : undefined
      this.results.push({ name, seconds: seconds(), note })
      this.#say(`✔ ${name} (${seconds()} s)${note === undefined ? '' : `: ${note}`}`)
      return result
    } catch (error) {
      this.#say(`✖ ${name} (${seconds()} s)`)
      throw error
    }
  }
}
