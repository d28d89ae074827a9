// The parts of README.md that are made from the figures: an example of the calculator, the measurements, and the model beside them.
import { readFileSync } from 'node:fs'
import { withParts } from '@spillway/infra/rig/settings-table'
import { describe } from './describe.ts'
import { type Figures, sourceOf } from './figures.ts'
import { demandOf, parseOptions } from './options.ts'
import { size, waitQuantileMs } from './sizing.ts'
import { DEFAULT_LIMITS, spikeCost } from './spike.ts'

export const guideFile = new URL('../README.md', import.meta.url)

const EXAMPLE = ['--logins-per-second', '500', '--p99-wait', '1s']

/** The guide with these parts written again. */
export function guideFor(figures: Figures): string {
  const parts = { example: example(figures), costs: costs(figures), waits: waits(figures), spike: spike(figures) }
  return withParts(readFileSync(guideFile, 'utf8'), parts)
}

function example(figures: Figures): string {
  const options = parseOptions(EXAMPLE)
  const demand = options && demandOf(options, { ...figures, hashSource: sourceOf(figures) })
  if (demand === undefined) throw new Error('the example asks for no size')
  return `\`\`\`\n$ pnpm size ${EXAMPLE.join(' ')}\n${describe(demand, size(demand, figures), figures)}\n\`\`\``
}

function costs({ machine, measuredAt, costMs, hashMs, turnaroundMs, jobBytes, memoryMib }: Figures): string {
  return table([
    [`${machine}; ${measuredAt}`, 'a login'],
    ['one hash at the default cost, processor time', `${hashMs.toFixed(1)} ms`],
    ['a slot between two hashes, time', `${turnaroundMs.toFixed(1)} ms`],
    ['gateway, processor time', `${costMs.gateway.toFixed(2)} ms`],
    ['worker beside the hash, processor time', `${costMs.worker.toFixed(2)} ms`],
    ['Redis, processor time', `${costMs.redis.toFixed(2)} ms`],
    ['PostgreSQL, processor time', `${costMs.postgres.toFixed(2)} ms`],
    ['a job that waits, in Redis', `${Math.round(jobBytes)} bytes`],
    ['a gateway, a worker at rest', `${Math.round(memoryMib.gateway)} MiB, ${Math.round(memoryMib.worker)} MiB`],
  ])
}

function waits({ checks }: Figures): string {
  return table([
    ['logins a second', 'slots', 'busy', '99 of 100 waited', 'predicted'],
    ...checks.map((check) => [
      check.perSecond.toFixed(1),
      String(check.slots),
      `${((check.perSecond * check.slotMs) / check.slots / 10).toFixed(0)} %`,
      `${Math.round(check.measuredMs.p99)} ms`,
      `${Math.round(waitQuantileMs(check, 0.99))} ms`,
    ]),
  ])
}

function spike({ spike }: Figures): string {
  const { perSecond, spikePerSecond, spikeS, slots, slotMs, measured } = spike
  const predicted = spikeCost({ ...spike, laterSlots: slots, scaleS: 0, limits: DEFAULT_LIMITS })
  return table([
    [
      `${spikePerSecond.toFixed(0)} a second for ${spikeS} s, then ${perSecond.toFixed(0)}, on ${slots} slots of ${slotMs.toFixed(1)} ms`,
      'measured',
      'predicted',
    ],
    ['jobs at the deepest', String(measured.deepest), String(Math.round(predicted.deepest))],
    ['longest wait', `${measured.longestWaitS.toFixed(1)} s`, `${predicted.longestWaitS.toFixed(1)} s`],
    ['over after', `${measured.overAfterS.toFixed(1)} s`, `${predicted.overAfterS.toFixed(1)} s`],
  ])
}

/** The first row is the head. */
function table([head = [], ...rows]: string[][]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
