// The method and the contenders: enough to doubt the figures well, or to repeat them.
import { TIMEOUT_MS } from '@spillway/local/rig/api-client'
import { contenders } from '../contenders/contenders.ts'
import { costOf } from '../contenders/hashing.ts'
import { show } from '../src/figures.ts'
import type { Results } from '../src/results.ts'

/** The last sections of the report, in Markdown. */
export function method({ machine, settings }: Results): string {
  const repeat = Number(settings.repeat)
  const points = [
    placement(machine.pinned),
    'Every contender serves the same API with the same Fastify, the same client to the same PostgreSQL tables, the same Ed25519 signatures and a log ' +
      'line for each request. PostgreSQL is local and does not wait for the disk.',
    `argon2id is ${costOf.argon2id}; bcrypt is ${costOf.bcrypt}. Rivals hash with @node-rs/argon2 and @node-rs/bcrypt, the fastest packages; ` +
      `Spillway's workers ${machine.engine === 'native' ? 'with their native engine' : 'with the same'}. Alone on its core, one verify with a ` +
      `package took ${show(Number(settings.argon2idBareMs))} ms and ${show(Number(settings.bcryptBareMs))} ms.`,
    'With bcrypt the password is wrong, so that each login costs everyone exactly one compare. After a right one Spillway would store argon2id in its ' +
      'place, and not be measured with bcrypt any more.',
    "A hundred users are autocannon's connections, opened over a second before anything is counted. Each sends its next request when the last was " +
      'answered. Where the question is overload (ramp, spike), requests leave when they are due, however slow the answers are, and latency counts from ' +
      'when they were due. The five thousand users keep a connection each; told to come back, they come back then, as a good client does.',
    `Servers are measured warm: each is logged in to ${show(Number(settings.warmUpLogins))} times before, or for ` +
      `${show(Number(settings.warmUpAtMostS))} s where that takes longer. These logins cost no hash: everyone takes a double of one, which goes the ` +
      'same way.',
    `A request without an answer after ${TIMEOUT_MS / 1_000} s is lost, and counts with that time in the percentiles. A ticket is redeemed until ` +
      'there is a verdict, and its wait counts until then.',
    "The neighbour endpoint reads the state of a file, for which Node needs a thread of libuv's pool (four), as it does for dns.lookup, zlib, much of " +
      "crypto, and every asynchronous hash. On Spillway's gateway, which has no such endpoint, it is a small static file of its API documentation. " +
      '/healthz needs the event loop alone. Both are asked 40 times a second.',
    'Hashes that only wait, or cost nothing, are doubles that a worker accepts when told to, and never in production. They are marked.',
    repeat > 1
      ? `Everything was measured ${repeat} times, in turn; figures are medians, with half the range after ±.`
      : 'Everything was measured once: how far repeats would lie apart is unknown.',
  ]
  return [
    '## How it was measured',
    points.map((point) => `- ${point}`).join('\n'),
    '### The contenders',
    contenders
      .map(({ title, how, origin, name }) => `- **${title}** (\`${name}\`): ${how} From ${linked(origin)}.`)
      .join('\n'),
    'Repeat it: `pnpm load`, or `pnpm load --help`.',
  ].join('\n\n')
}

function placement(pinned: boolean): string {
  return pinned
    ? 'Processes are pinned with taskset: load generator and PostgreSQL to the first core, all processes of the contender, and Redis, to the others. ' +
        'Only what is said to include every process (ramp and five thousand users without a hash, scale-out, Redis) runs unpinned on all cores.'
    : 'Nothing is pinned: this machine has no taskset or only one core, so the load generator shares the processor with what it measures.'
}

/** An address becomes a link. */
function linked(origin: string): string {
  return origin.replace(/^https:\/\/(\S+)/, '[$1]($&)')
}
