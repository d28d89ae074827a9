// Everything that can be measured, in the order of the report.
import { efficiency, engines, idle } from './bare-hash.ts'
import { login100, mixed100, stress5000 } from './crowds.ts'
import { profile } from './profile.ts'
import { ramp } from './ramp.ts'
import { redis } from './redis.ts'
import { scaleOut } from './scale-out.ts'
import type { Scenario } from './scenario.ts'
import { service } from './service.ts'
import { severalRedis } from './several-redis.ts'
import { spike } from './spike.ts'

export const scenarios: readonly Scenario[] = [
  login100,
  mixed100,
  stress5000,
  ramp,
  spike,
  scaleOut,
  redis,
  severalRedis,
  idle,
  service,
  efficiency,
  profile,
  engines,
]
