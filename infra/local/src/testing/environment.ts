// The environment of a test run, passed to the processes of its tests: the URLs of the template database and of Redis.
import { UserError } from '../processes/user-error.ts'

export interface TestEnvironment {
  /** The migrated database that namespaces are copies of. Nobody connects to it. */
  templateUrl: string
  redisUrl: string
}

const names = { templateUrl: 'SPILLWAY_TEST_TEMPLATE_URL', redisUrl: 'SPILLWAY_TEST_REDIS_URL' } as const

/** The variables that carry this environment to child processes. */
export function toVariables({ templateUrl, redisUrl }: TestEnvironment): NodeJS.ProcessEnv {
  return { [names.templateUrl]: templateUrl, [names.redisUrl]: redisUrl }
}

/** The environment of the test run that this process is part of, or undefined outside of one. */
export function findTestEnvironment(): TestEnvironment | undefined {
  const { [names.templateUrl]: templateUrl, [names.redisUrl]: redisUrl } = process.env
  return templateUrl === undefined || redisUrl === undefined ? undefined : { templateUrl, redisUrl }
}

/** Like findTestEnvironment; throws a UserError outside of a test run. */
export function testEnvironment(): TestEnvironment {
  const found = findTestEnvironment()
  if (found) return found
  throw new UserError(
    'This test needs PostgreSQL and Redis: run it by "pnpm test", with a part of its file name after it.',
  )
}
