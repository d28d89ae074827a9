// Describes a price in lines.
import { policyInWords } from './calibrate/calibrate.ts'
import { type MeasuredHash, type Price, type Pricing, raised } from './price.ts'
import type { Demand } from './sizing.ts'

export function describePrice(
  { perCoreHour, spikesPerMonth }: Pricing,
  demand: Demand,
  price: Price,
  hashes: readonly MeasuredHash[],
): string {
  const { minimumCores, storeCores, redisServers, affordableHashMs } = price
  const redis = redisServers === 1 ? 'Redis' : `${redisServers} Redis (${money(price.redisMonth)})`
  const more = Math.round((affordableHashMs / demand.hashMs - 1) * 100)
  return [
    `At ${perCoreHour} a core hour:`,
    '',
    'a thousand logins, by their processor time:',
    ...hashes.map(({ policy, engine, ms }) => {
      const login = money(price.thousandLogins(ms))
      return `  ${policyInWords(policy).padEnd(34)}  ${engine.padEnd(18)}  ${`${ms.toFixed(1)} ms`.padStart(9)}  ${login}`
    }),
    `  ${'as sized above'.padEnd(34)}  ${''.padEnd(18)}  ${`${demand.hashMs.toFixed(1)} ms`.padStart(9)}  ${money(price.thousandLogins(demand.hashMs))}`,
    '',
    `the minimum  ${money(price.minimumMonth)} a month (${minimumCores} cores of workers and gateways), beside ${money(price.storeMonth)} for ${redis} and PostgreSQL (${storeCores} cores)`,
    `a spike      ${money(price.aSpike)} each, ${money(price.spikesMonth)} for ${spikesPerMonth} a month; its workers always there: ${money(price.preScaledMonth)} a month`,
    '',
    `For the same money a hash may take ${affordableHashMs.toFixed(1)} ms, ${more} % more, before a worker is added.`,
    ...hashes.flatMap((slow) => {
      const fast = hashes.find(({ policy, ms }) => policy === slow.policy && ms < slow.ms)
      const higher = fast && raised(slow.policy, slow.ms / fast.ms)
      if (fast === undefined || higher === undefined) return []
      return [
        `What ${slow.engine} takes for ${policyInWords(slow.policy)}, ${fast.engine} takes for ${policyInWords(higher)}.`,
      ]
    }),
  ].join('\n')
}

/** In whatever currency the price is. */
function money(amount: number): string {
  if (amount >= 100) return amount.toFixed(0)
  return amount >= 1 ? amount.toFixed(2) : amount.toPrecision(2)
}
