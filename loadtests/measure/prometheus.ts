// Sums and counts of histograms from a /metrics page.

export interface HistogramSum {
  sum: number
  count: number
}

/** Adds up all series of a histogram whose labels hold the given ones, such as `job="verify"`. */
export async function readHistogram(opsUrl: string, name: string, label = ''): Promise<HistogramSum> {
  const page = await (await fetch(`${opsUrl}/metrics`)).text()
  const total = (suffix: string) =>
    page
      .split('\n')
      .filter((line) => line.startsWith(`${name}_${suffix}`) && line.includes(label))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  return { sum: total('sum'), count: total('count') }
}
