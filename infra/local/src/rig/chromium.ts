// The Chromium that tests drive, if this machine has one.
import { onPath } from '../services/on-path.ts'

const program = onPath(['chromium', 'chromium-browser', 'google-chrome'])

/** Why tests that need it are skipped, or false. */
export const skipWithoutChromium = program === undefined ? 'there is no Chromium on the PATH' : false

/** How playwright-core launches it. As root, which containers often are, its sandbox cannot be had. */
export const chromiumOptions = { executablePath: program ?? '', args: ['--no-sandbox'] }
