// What the sizing guide's model says of the spike that was measured.
import { readFigures } from '@spillway/sizing/figures'
import { DEFAULT_LIMITS, type SpikeCost, spikeCost } from '@spillway/sizing/spike'
import { type MeasuredSpike, ORDINARY_PER_SECOND, SPIKE_PER_SECOND } from './scenario/spike.ts'
import { HASH_MS, MAX_REPLICAS } from './scenario/stage.ts'

/** From the rates, the hash, and when the added workers were there; of what came of it, nothing. */
export function predictSpike({ lengthS, scaleS }: MeasuredSpike): SpikeCost {
  return spikeCost({
    perSecond: ORDINARY_PER_SECOND,
    spikePerSecond: SPIKE_PER_SECOND,
    spikeS: lengthS,
    slotMs: HASH_MS + readFigures().turnaroundMs,
    slots: 1,
    laterSlots: MAX_REPLICAS,
    scaleS,
    // Tickets of this test are good for minutes.
    limits: { ...DEFAULT_LIMITS, ticketTtlMs: 300_000 },
  })
}
