// A real Chromium for tests, and the pictures of pages that READMEs show.
import { join } from 'node:path'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { onPath } from '@spillway/infra/processes/run'

/** Whether this run is to take pictures. */
export const takesPictures = process.env.SPILLWAY_SCREENSHOTS === 'true'

interface Pictured {
  screenshot(options: { path: string; animations: 'disabled' }): Promise<unknown>
}

/** Takes the picture of a page in place of the present one, where this run takes pictures. */
export async function takePicture(page: Pictured, name: string): Promise<void> {
  if (!takesPictures) return
  const path = join(repositoryDir, 'infra/grafana/screenshots', `${name}.png`)
  await page.screenshot({ path, animations: 'disabled' })
}

/** The Chromium that tests drive, if this machine has one. */
const program = onPath(['chromium', 'chromium-browser', 'google-chrome'])

/** Why tests that need it are skipped, or false. */
export const skipWithoutChromium = program === undefined ? 'there is no Chromium on the PATH' : false

/** How playwright-core launches it. Root, as in many containers, cannot have its sandbox. */
export const chromiumOptions = { executablePath: program ?? '', args: ['--no-sandbox'] }
