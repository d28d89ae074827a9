// Reads values from a /metrics page.

/**
 * Adds up the series of a metric that hold one of the given labels, such as `job="verify"`. Without a label, it is the one series that has
 * none; rejects where there is no such series.
 */
export async function readMetric(opsUrl: string, name: string, ...labels: readonly string[]): Promise<number> {
  const page = (await (await fetch(`${opsUrl}/metrics`)).text()).split('\n')
  const isAsked = (line: string): boolean =>
    labels.length === 0
      ? line.startsWith(`${name} `)
      : line.startsWith(`${name}{`) && labels.some((label) => line.includes(label))
  const values = page.filter(isAsked).map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)))
  if (labels.length === 0 && values.length === 0) throw new Error(`${opsUrl} has no ${name}`)
  return values.reduce((sum, value) => sum + value, 0)
}
