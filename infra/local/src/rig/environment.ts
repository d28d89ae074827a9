// The environment of a test run, passed to the processes of its tests: the URLs of the template database and of Redis.
import { UserError } from '../processes/user-error.ts'

export interface TestEnvironment {
  /** The migrated database that namespaces are copies of. Nobody connects to it. */
  templateUrl: string
  redisUrl: string
}

/** The variables that carry this environment to child processes. */
export function toVariables({ templateUrl, redisUrl }: TestEnvironment): NodeJS.ProcessEnv {
  return { SPILLWAY_TEST_TEMPLATE_URL: templateUrl, SPILLWAY_TEST_REDIS_URL: redisUrl }
}

/** The environment of the test run that this process is part of. Throws a UserError outside of one. */
export function testEnvironment(): TestEnvironment {
  const { SPILLWAY_TEST_TEMPLATE_URL: templateUrl, SPILLWAY_TEST_REDIS_URL: redisUrl } = process.env
  if (templateUrl !== undefined && redisUrl !== undefined) return { templateUrl, redisUrl }
  throw new UserError(
    'This test needs PostgreSQL and Redis: run it by "pnpm test", with a part of its file name after it.',
  )
}
