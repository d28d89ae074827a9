// Scenarios with users who log in.
import { scenarios } from '../../scenarios/scenarios.ts'
import { testShortRuns } from '../short-run.ts'

const named = {
  'login-100': ['spillway, argon2id'],
  'mixed-100': ['spillway, argon2id'],
  'stress-5000': ['in-process, argon2id', 'spillway, token'],
  spike: ['spillway, argon2id'],
}

await testShortRuns(
  scenarios.filter(({ name }) => name in named),
  named,
)
