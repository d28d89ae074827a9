// Named steps, each reported with its time as it ends.

export type Steps = ReturnType<typeof createSteps>

export function createSteps(say: (line: string) => void) {
  /** The note is what was measured, in a few words. */
  const results: { name: string; seconds: number; note: string | undefined }[] = []
  let fail: (error: Error) => void = () => {}
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  return {
    results,
    /** Ends the current step, or the next one, with this error. */
    fail: (error: Error) => fail(error),
    /** Runs a step and resolves to its result, which is reported with its name if it is a text. Rejects as the step does. */
    async step<T>(name: string, run: () => Promise<T>): Promise<T> {
      const startedAt = performance.now()
      const seconds = (): number => Math.round((performance.now() - startedAt) / 100) / 10
      try {
        const result = await Promise.race([run(), failed])
        const note = typeof result === 'string' ? result : undefined
        results.push({ name, seconds: seconds(), note })
        say(`✔ ${name} (${seconds()} s)${note === undefined ? '' : `: ${note}`}`)
        return result
      } catch (error) {
        say(`✖ ${name} (${seconds()} s)`)
        throw error
      }
    },
  }
}
