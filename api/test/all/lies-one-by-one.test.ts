// Lies in Redis, each for each key by itself: one cannot make up for another.
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { lies, openLiedTo } from '../lies.ts'

/** Two systems side by side: a lie is mended by what happens every second or two. */
const systems = await Promise.all([openLiedTo(), openLiedTo()])
afterAll(() => Promise.all(systems.map((system) => system.close())))

for (const [half, { redis, uses, everythingWorks, keys }] of systems.entries()) {
  test.concurrent(`each lie for each key, half ${half + 1} of the lies: a login and a ticket soon after, then everything`, async () => {
    for (const key of await keys()) {
      for (const { what, tell } of lies.filter((_, n) => n % systems.length === half)) {
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
  }, 600_000)
}
