// The row "Is anyone attacking?" Guessing, forging, and what it is stopped by.
import type { Row } from '../panel.ts'
import { LOGIN, rate } from '../promql.ts'

export const isAnyoneAttacking: Row = {
  title: 'Is anyone attacking?',
  panels: [
    {
      title: 'Refusals by reason',
      description: 'Limits, wrong passwords, unknown accounts, reused refresh tokens.',
      unit: 'reqps',
      queries: [{ expr: rate('spillway_refused_total', 'reason'), legend: '{{reason}}' }],
    },
    {
      title: 'Logins with a wrong password or no account',
      description: 'Share of the logins that were verified. People mistype; from half on it is programs.',
      unit: 'percentunit',
      thresholds: { warn: 0.3, bad: 0.5 },
      queries: [
        {
          expr: `(${rate(`spillway_http_requests_total{${LOGIN},outcome="invalid_credentials"}`)} or vector(0)) / ${rate(`spillway_http_requests_total{${LOGIN},outcome=~"ok|invalid_credentials"}`)}`,
          legend: 'wrong',
        },
        {
          expr: `${rate('spillway_refused_total{reason="unknown_account"}')} / clamp_min(${rate('spillway_refused_total{reason=~"unknown_account|wrong_password"}')}, 0.001)`,
          legend: 'of these, unknown accounts',
        },
      ],
    },
    {
      title: 'Seals that did not open',
      description: 'verdict and request: someone writes to Redis, or keys differ. ticket: someone makes tickets up.',
      unit: 'reqps',
      queries: [{ expr: rate('spillway_seal_failures_total', 'purpose'), legend: '{{purpose}}' }],
    },
    {
      title: 'Guesses at the ops port',
      description: 'Wrong user names or passwords of operators.',
      unit: 'reqps',
      width: 12,
      queries: [{ expr: rate('spillway_operator_login_failures_total', 'instance'), legend: '{{instance}}' }],
    },
    {
      title: 'Algorithms at login',
      description: 'Hashes verified or made, by algorithm, and old ones replaced: how far the migration is.',
      unit: 'reqps',
      width: 12,
      queries: [
        { expr: rate('spillway_service_seconds_count', 'algorithm'), legend: '{{algorithm}}' },
        { expr: rate('spillway_rehashes_total'), legend: 'replaced' },
      ],
    },
  ],
}
