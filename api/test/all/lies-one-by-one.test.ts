// Lies in Redis, each for each key by itself: one cannot make up for another.
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { lies, openLiedTo } from '../lies.ts'

const { redis, uses, everythingWorks, keys, close } = await openLiedTo()
afterAll(close)

for (const [part, parts] of [0, 1, 2, 3, 4, 5, 6, 7].map((n) => [n, 8] as const)) {
  test(`each lie for each key, part ${part + 1} of ${parts}: a login and a ticket soon after, then everything`, async () => {
    const all = await keys()
    for (const key of all.slice((all.length * part) / parts, (all.length * (part + 1)) / parts)) {
      for (const { what, tell } of lies) {
        await tell(redis, key)
        for (const use of ['login', 'a ticket', 'a wrong password']) {
          await until(async () => uses[use]?.().then(() => true), {
            what: `${use} after ${what} for ${key}`,
            timeoutMs: 20_000,
          })
        }
      }
      await everythingWorks()
    }
  })
}
