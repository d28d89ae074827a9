// The report of a storm: one HTML file with everything in it.
import { NOISE_MS } from '../calm-again.ts'
import type { StormResult } from '../result.ts'
import { type Advice, advice } from '../words/advice.ts'
import { phases, table } from '../words/in-words.ts'
import { count, milliseconds, seconds, sentences } from '../words/sentences.ts'
import { chart, Html, html } from './chart.ts'
import { style } from './style.ts'

/** @returns a whole HTML document that needs nothing else, not even a network */
export function renderReport(result: StormResult): string {
  const [first = '', ...others] = sentences(result)
  const todo = advice(result)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>A storm of logins</title>
<style>${new Html(style)}</style>
</head>
<body>
<header>
  <h1>What do logins do to the rest?</h1>
  <p class="lead">${first}</p>
  <p class="settings">${settingsOf(result)}</p>
</header>
<main>
${result.interrupted ? html`<p class="warning">This storm was interrupted: what follows is what it had measured until then.</p>` : undefined}
${others.map((sentence) => html`<p>${sentence}</p>`)}
${tableOf(result)}
${chart(result)}
${todo.length > 0 ? html`<section><h2>What to do</h2>${todo.map(paragraph)}</section>` : undefined}
<section><h2>How it was measured</h2>${method(result).map((text) => html`<p>${text}</p>`)}</section>
</main>
</body>
</html>
`.text
}

function settingsOf({ startedAt, settings }: StormResult): string {
  const { users, durationS, probesPerSecond, p99Ms, timeoutS } = settings
  const when = startedAt.slice(0, 16).replace('T', ' ')
  return (
    `${when} UTC · ${count(users)} users · ${seconds(durationS)} · probes ${probesPerSecond} times a second · limit ` +
    `${milliseconds(p99Ms)} at p99 · time limit ${seconds(timeoutS)}`
  )
}

function tableOf(result: StormResult): Html | undefined {
  const { columns, rows } = table(result)
  if (rows.length === 0) return undefined
  const perPhase = columns.length / phases.length
  return html`<div class="table"><table>
  <thead>
    <tr><th></th>${phases.map((phase) => html`<th colspan="${perPhase}">${phase}</th>`)}</tr>
    <tr><th></th>${columns.map((column) => html`<th>${column}</th>`)}</tr>
  </thead>
  <tbody>${rows.map(({ name, cells }) => html`<tr><th>${name}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
</table></div>`
}

function paragraph({ text, code = [], link }: Advice): Html {
  const more = link === undefined ? undefined : html` <a href="${link}">README</a>`
  return html`<p>${text}${more}</p>${code.length > 0 ? html`<pre><code>${code.join('\n')}</code></pre>` : undefined}`
}

function method({ settings, generator }: StormResult): string[] {
  const { timeoutS, calmS } = settings
  return [
    `Each user logs in again as soon as the last login was answered, on a connection of its own. Probes are sent at a constant rate, ` +
      'and timed from when they were due, so that one that has to wait is not left out. One that fails, or has no answer within ' +
      `${seconds(timeoutS)}, counts as ${seconds(timeoutS)}.`,
    `Calm is ${seconds(calmS)} before the first login; the storm lasts until the last login has ended. Afterwards a probe is as quick as ` +
      `before once no answer in a second takes more than twice its p99 when calm, or ${NOISE_MS} ms.`,
    `The program that measured used ${count(generator.corePercent)} % of a core during the storm` +
      (generator.lateP99Ms === undefined ? '.' : `, and sent probes ${milliseconds(generator.lateP99Ms)} late at p99.`),
  ]
}
