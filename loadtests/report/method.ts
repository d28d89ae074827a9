// The method and the contenders: enough to doubt the figures well, or to repeat them.

import { type Html, html } from '@spillway/client/storm/report/html'
import { TIMEOUT_MS } from '@spillway/local/testing/api-client'
import { contenders } from '../contenders/contenders.ts'
import { costOf } from '../contenders/hashing.ts'
import { show } from '../src/figures.ts'
import type { Results } from '../src/results.ts'

export function method(results: Results): Html {
  const { machine, settings } = results
  const repeat = Number(settings.repeat)
  return html`<section id="method">
    <h2>How it was measured</h2>
    <ul>
      <li>${placement(machine.pinned)}</li>
      <li>Every contender serves the same API with the same Fastify, the same client to the same PostgreSQL tables, the same Ed25519
        signatures and a log line for each request. PostgreSQL is local and does not wait for the disk.</li>
      <li>argon2id is ${costOf.argon2id}; bcrypt is ${costOf.bcrypt}. Rivals hash with @node-rs/argon2 and @node-rs/bcrypt, the fastest packages;
        Spillway's workers ${machine.engine === 'native' ? 'with their native engine' : 'with the same'}. Alone on its core, one verify with a package took ${show(Number(settings.argon2idBareMs))} ms and ${show(Number(settings.bcryptBareMs))} ms.</li>
      <li>With bcrypt the password is wrong, so that each login costs everyone exactly one compare: after a right one Spillway would store
        argon2id in its place, and not be measured with bcrypt any more.</li>
      <li>A hundred users are autocannon's connections, opened over a second before anything is counted: each sends its next request when the last was answered. Where the question is
        overload (ramp, spike), requests leave when they are due, however slow the answers are, and latency counts from when they were due.
        The five thousand users keep a connection each; told to come back, they come back then, as a good client does.</li>
      <li>Servers are measured warm: each is logged in to ${show(Number(settings.warmUpLogins))} times before, or for ${show(Number(settings.warmUpAtMostS))} s where that takes longer. These logins
        cost no hash: everyone takes a double of one, which goes the same way.</li>
      <li>A request without an answer after ${TIMEOUT_MS / 1_000} s is lost, and counts with that time in the percentiles. A ticket is
        redeemed until there is a verdict, and its wait counts until then.</li>
      <li>The neighbour endpoint reads the state of a file, for which Node needs a thread of libuv's pool (four), as it does for dns.lookup, zlib, much
        of crypto, and every asynchronous hash; on Spillway's gateway, which has none such, it is a small static file of its API
        documentation. /healthz needs the event loop alone. Both are asked 40 times a second.</li>
      <li>Hashes that only wait, or cost nothing, are doubles that a worker accepts when told to and never in production. They are marked.</li>
      <li>${repeat > 1 ? `Everything was measured ${repeat} times, in turn; figures are medians, with half the range after ±.` : 'Everything was measured once: how far repeats would lie apart is unknown.'}</li>
    </ul>
    <h3>The contenders</h3>
    <dl>${contenders.map(
      ({ title, how, origin, name }) =>
        html`<dt>${title} <code>${name}</code></dt><dd>${how}<br><span class="origin">From ${linked(origin)}</span></dd>`,
    )}</dl>
    <p>Repeat it: <code>pnpm load</code>, or <code>pnpm load --help</code>.</p>
  </section>`
}

function placement(pinned: boolean): string {
  return pinned
    ? 'Processes are pinned with taskset: load generator and PostgreSQL to the first core, all processes of the contender, and Redis, to the others. ' +
        'Only what is said to include every process (ramp and five thousand users without a hash, scale-out, Redis) runs unpinned on all cores.'
    : 'Nothing is pinned: this machine has no taskset or only one core, so the load generator shares the processor with what it measures.'
}

/** An address becomes a link. */
function linked(origin: string): Html {
  const [, address, rest] = /^(https:\/\/\S+)(.*)$/.exec(origin) ?? []
  return address === undefined
    ? html`${origin}`
    : html`<a href="${address}">${address.replace('https://', '')}</a>${rest}`
}
