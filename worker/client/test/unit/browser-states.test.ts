// The states of a call: the client's list, the words of the waiting room and the table of README are one.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'vitest'
import { progressStates } from '../../src/browser.ts'

const room = new URL('../../examples/waiting-room/', import.meta.url)

test('the waiting room has a heading and a text for each state of the client, and the README names each', async () => {
  const { words } = await import(new URL('words.js', room).href)
  assert.deepEqual(Object.keys(words), [...progressStates])
  for (const state of progressStates) {
    const { title, text } = words[state]
    for (const progress of [{}, { position: 0 }, { position: 3, etaS: 40 }])
      assert.ok(title && text(progress).length > 10)
  }
  assert.doesNotMatch(words.paused.text({ position: 0, etaS: 0 }), /moment|expected/)
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  const rows = [...readme.matchAll(/^\| `(\w+)` \| while /gm)].map(([, state]) => state)
  assert.deepEqual(rows, [...progressStates])
})
