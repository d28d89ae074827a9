// Named steps, each with its time, told as they end.

export interface StepResult {
  name: string
  seconds: number
  /** What was measured, in a few words. */
  note: string | undefined
}

export interface Steps {
  results: StepResult[]
  /** Ends the step that runs, or the next one, with this error. */
  fail(error: Error): void
  /** Runs a step. It rejects as the step does, after telling which it was. What it resolves to is told with its name. */
  step(name: string, run: () => Promise<string | undefined>): Promise<void>
}

export function createSteps(say: (line: string) => void): Steps {
  const results: StepResult[] = []
  let fail: (error: Error) => void = () => {}
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  return {
    results,
    fail: (error) => fail(error),
    async step(name, run) {
      const startedAt = performance.now()
      const seconds = (): number => Math.round((performance.now() - startedAt) / 100) / 10
      try {
        const note = await Promise.race([run(), failed])
        results.push({ name, seconds: seconds(), note })
        say(`✔ ${name} (${seconds()} s)${note === undefined ? '' : `: ${note}`}`)
      } catch (error) {
        say(`✖ ${name} (${seconds()} s)`)
        throw error
      }
    },
  }
}
