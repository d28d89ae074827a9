// The report: one HTML file with everything in it, for someone who has five minutes.
import { readFileSync } from 'node:fs'
import { Html, html } from '@spillway/client/storm/report/html'
import { style as styleOfReports } from '@spillway/client/storm/report/style'
import type { Results } from '../src/results.ts'
import { method } from './method.ts'
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

const ownStyle = readFileSync(new URL('report.css', import.meta.url), 'utf8')

/** @returns a whole HTML document that needs nothing else, not even a network */
export function renderReport(results: Results): string {
  const drawn = Object.entries(sections).flatMap(([name, draw]) => {
    const result = results.scenarios.find((scenario) => scenario.name === name)
    return result === undefined || result.runs.length === 0 ? [] : [draw(result)]
  })
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Spillway load tests</title>
<style>${new Html(styleOfReports + ownStyle)}</style>
</head>
<body>
<header>
  <h1>Where should passwords be hashed?</h1>
  <p class="lead">The architectures in use for logins in Node, measured side by side on the same cores, with the same
  users, the same hash and the same API around it.</p>
  <p class="settings">${about(results)}</p>
</header>
<main>
${results.interrupted ? html`<p class="warning">This run was interrupted: what follows is what it had measured until then.</p>` : undefined}
${noiseWarning(results)}
${generatorWarning(results)}
${headlines(results)}
${contenderTable(results)}
${drawn}
${method(results)}
</main>
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

function noiseWarning(results: Results): Html | undefined {
  const seen = results.scenarios.flatMap(({ runs }) => runs.flatMap(({ backgroundPercent }) => backgroundPercent ?? []))
  const noisy = seen.filter((percent) => percent > NOISY_PERCENT)
  if (noisy.length === 0) return undefined
  return html`<p class="warning">The machine was not quiet: before ${noisy.length} of ${seen.length} measurements others used more than
    ${NOISY_PERCENT} % of it. Take the figures as rough.</p>`
}

/** Of a core: above this the generator may have been what was slow. */
const GENERATOR_BUSY_PERCENT = 85

function generatorWarning(results: Results): Html | undefined {
  const busy = results.scenarios.flatMap(({ name, runs }) =>
    runs
      .filter(({ figures }) => (figures.generatorPercent ?? 0) > GENERATOR_BUSY_PERCENT)
      .map(({ contender, variant }) => `${name} (${contender}, ${variant})`),
  )
  if (busy.length === 0) return undefined
  return html`<p class="warning">The load generator itself used more than ${GENERATOR_BUSY_PERCENT} % of a core in ${busy.join(', ')}:
    there the servers may be faster than shown.</p>`
}
