// The report: a Markdown page for someone who has five minutes, and one page with its pictures.
import { TIMEOUT_MS } from '@spillway/infra/rig/api-client'
import { Html, html } from '@spillway/storm/report/report'
import { style } from '@spillway/storm/report/style'
import { contenders } from '../contenders/contenders.ts'
import { costOf } from '../contenders/hashing.ts'
import type { Results } from '../src/results.ts'
import { show } from '../src/summary.ts'
import { sectionsOf } from './sections.ts'
import { contenderTable, headlines } from './summary.ts'

/** @param pictures where {@link renderPictures} is written, beside the page */
export function renderMarkdown(results: Results, pictures: string): string {
  const parts = [
    '# Where should passwords be hashed?',
    'The architectures in use for logins in Node, measured side by side on the same cores, with the same users, the same hash and the same API ' +
      `around them. Each section has its charts in [the pictures](${pictures}).`,
    about(results),
    ...warnings(results).map((warning) => `> **Note:** ${warning}`),
    list(headlines(results)),
    contenderTable(results),
    ...sectionsOf(results).map(({ title, question, table, failures, name, settings }) =>
      [
        `## ${title}`,
        `*${question}*`,
        ...(table === '' ? [] : [table]),
        ...(failures.length > 0 ? ['Without figures:', list(failures)] : []),
        `${name}: ${settings}`,
      ].join('\n\n'),
    ),
    method(results),
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

export function list(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join('\n')
}

/** @returns a whole HTML document that needs nothing else, not even a network */
export function renderPictures(results: Results): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Spillway load tests: pictures</title>
<style>${new Html(`${style}.plot { display: block; max-width: 100%; height: auto; }`)}</style>
</head>
<body>
<header><h1>Where should passwords be hashed?</h1><p class="settings">${about(results)}</p></header>
<main>${sectionsOf(results).map(
    ({ name, title, question, charts }) =>
      html`<section id="${name}"><h2>${title}</h2><p class="question">${question}</p>${charts}</section>`,
  )}</main>
</body>
</html>
`.text
}

function about({ startedAt, commit, machine }: Results): string {
  const { processor, cores, memoryGib, system, node } = machine
  const when = startedAt.slice(0, 16).replace('T', ' ')
  return `${when} UTC · commit ${commit} · ${processor}, ${cores} cores, ${memoryGib} GiB · ${system} · Node ${node}`
}

/** Above this, others used so much of the machine that figures should be measured again. */
const NOISY_PERCENT = 10
/** Of a core: above this the generator may have been what was slow. */
const GENERATOR_BUSY_PERCENT = 85

/** What makes the figures doubtful, a sentence each. */
function warnings({ interrupted, scenarios }: Results): string[] {
  const background = scenarios.flatMap(({ runs }) => runs.flatMap(({ backgroundPercent }) => backgroundPercent ?? []))
  const noisy = background.filter((percent) => percent > NOISY_PERCENT)
  const busy = scenarios.flatMap(({ name, runs }) =>
    runs
      .filter(({ figures }) => (figures.generatorPercent ?? 0) > GENERATOR_BUSY_PERCENT)
      .map(({ contender, variant }) => `${name} (${contender}, ${variant})`),
  )
  return [
    interrupted && 'This run was interrupted: what follows is what it had measured until then.',
    noisy.length > 0 &&
      `The machine was not quiet: before ${noisy.length} of ${background.length} measurements others used more than ${NOISY_PERCENT} % of it. ` +
        'Take the figures as rough.',
    busy.length > 0 &&
      `The load generator itself used more than ${GENERATOR_BUSY_PERCENT} % of a core in ${busy.join(', ')}: there the servers may be ` +
        'faster than shown.',
  ].filter((warning) => warning !== false)
}

/** The last sections of the report, in Markdown. */
function method({ machine, settings }: Results): string {
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
