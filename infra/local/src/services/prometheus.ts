// Reads values from a /metrics page.

/** Adds up all series of a histogram whose labels hold the given one, such as `job="verify"`. */
export async function readHistogram(opsUrl: string, name: string, label: string) {
  const page = await readPage(opsUrl)
  return { sum: addUp(page, `${name}_sum`, label), count: addUp(page, `${name}_count`, label) }
}

/** Adds up all series of a gauge whose labels hold one of the given ones. */
export async function readGauge(opsUrl: string, name: string, labels: readonly string[]): Promise<number> {
  const page = await readPage(opsUrl)
  return labels.reduce((sum, label) => sum + addUp(page, name, label), 0)
}

/** A gauge without labels. */
export async function readPlainGauge(opsUrl: string, name: string): Promise<number> {
  const line = (await readPage(opsUrl)).find((line) => line.startsWith(`${name} `))
  if (line === undefined) throw new Error(`${opsUrl} has no ${name}`)
  return Number(line.slice(name.length + 1))
}

async function readPage(opsUrl: string): Promise<string[]> {
  return (await (await fetch(`${opsUrl}/metrics`)).text()).split('\n')
}

function addUp(page: readonly string[], name: string, label: string): number {
  return page
    .filter((line) => line.startsWith(`${name}{`) && line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
