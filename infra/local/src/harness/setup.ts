// What tests stand on: everything is built, and PostgreSQL and Redis run, for all levels but units.
import type { TestProject } from 'vitest/node'
import { onLauncherGone } from '../processes/command.ts'
import { Keeper } from '../processes/keeper.ts'
import { build, checkPlatform } from '../start/build.ts'
import { readEnvironment } from '../start/places.ts'
import { testVariables } from './namespace.ts'
import { startTestServices } from './services.ts'

/** Vitest calls this once for each project, one after the other. Its process hands its environment on to those of test files. */
export default async function setUp({ name }: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (process.env.SPILLWAY_TEST_DIR !== undefined) return
  checkPlatform()
  // Its processes end with this one, whatever ends it.
  const keeper = new Keeper()
  const launcher = onLauncherGone(() => process.exit(1))
  const close = async () => {
    launcher.close()
    await keeper.close()
  }
  try {
    if (name === 'unit') {
      await build(keeper)
      return close
    }
    const services = await startTestServices(keeper, readEnvironment(process.env))
    Object.assign(process.env, testVariables(services))
    return () => services.close().finally(close)
  } catch (error) {
    await close()
    throw error
  }
}
