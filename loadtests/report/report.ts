// The report: a Markdown page for someone who has five minutes, and one page with its pictures.
import { Html, html } from '@spillway/storm/report/html'
import { style } from '@spillway/storm/report/style'
import type { Results } from '../src/results.ts'
import { method } from './method.ts'
import type { Section } from './section.ts'
import { loginSection } from './sections/login-100.ts'
import { profileSection } from './sections/profile.ts'
import { rampSection } from './sections/ramp.ts'
import { scaleOutSection } from './sections/scale-out.ts'
import {
  efficiencySection,
  enginesSection,
  idleSection,
  mixedSection,
  redisSection,
  serviceSection,
  severalRedisSection,
} from './sections/single-figures.ts'
import { spikeSection } from './sections/spike.ts'
import { stressSection } from './sections/stress-5000.ts'
import { contenderTable, headlines } from './summary.ts'

const sections = {
  'login-100': loginSection,
  'mixed-100': mixedSection,
  'stress-5000': stressSection,
  ramp: rampSection,
  spike: spikeSection,
  'scale-out': scaleOutSection,
  redis: redisSection,
  'several-redis': severalRedisSection,
  idle: idleSection,
  service: serviceSection,
  efficiency: efficiencySection,
  profile: profileSection,
  engines: enginesSection,
}

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
    ...sectionsOf(results).map(({ title, question, says, failures, name, settings }) =>
      [
        `## ${title}`,
        `*${question}*`,
        says,
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

function sectionsOf({ scenarios }: Results): Section[] {
  return Object.entries(sections).flatMap(([name, draw]) => {
    const result = scenarios.find((scenario) => scenario.name === name)
    return result === undefined || result.runs.length === 0 ? [] : [draw(result)]
  })
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
