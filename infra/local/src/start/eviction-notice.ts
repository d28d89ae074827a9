// Tells at the start which Redis servers may evict keys, as the gateway found them.

/** A sentence for each of them; empty where every server has the policy `noeviction`. Never rejects. */
export async function evictionNotice(opsUrl: string): Promise<string> {
  const page = await fetch(`${opsUrl}/metrics`).then(
    (response) => response.text(),
    () => '',
  )
  const series = page.matchAll(/^spillway_redis_evicts(?:\{redis="([^"]*)"\})? (1|NaN)$/gim)
  return [...series]
    .map(([, address, value]) => {
      const server = address === undefined ? 'The Redis server' : `The Redis server ${address}`
      return value === '1'
        ? `${server} may evict keys: counters of guesses, marks of used tickets and jobs. Set its maxmemory-policy to noeviction.`
        : `${server} does not tell whether it evicts keys: see to it that its maxmemory-policy is noeviction.`
    })
    .join('\n')
}
