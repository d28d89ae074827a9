// The row "Are logins fine?" Whether people get in: failures against the objective, and how long it takes.
import type { Row } from '../panel.ts'
import { LOGIN, quantiles, rate } from '../promql.ts'

export const areLoginsFine: Row = {
  title: 'Are logins fine?',
  panels: [
    {
      title: 'Logins that failed here',
      description: 'Share of logins answered with 5xx: refused as busy, or broken. The objective allows 0.5 %.',
      type: 'stat',
      unit: 'percentunit',
      width: 4,
      thresholds: { warn: 0.005, bad: 0.05 },
      queries: [
        {
          expr: `(${rate(`spillway_http_requests_total{${LOGIN},status=~"5.."}`)} or vector(0)) / ${rate(`spillway_http_requests_total{${LOGIN}}`)}`,
          legend: 'failed',
        },
      ],
    },
    {
      title: 'Error budget left',
      description: 'Of the 0.5 % that may fail, over the time shown. Below 0 the objective is missed.',
      type: 'stat',
      unit: 'percentunit',
      width: 4,
      floor: { warn: 0.5, bad: 0 },
      queries: [
        {
          expr: `1 - (sum(increase(spillway_http_requests_total{${LOGIN},status=~"5.."}[$__range])) or vector(0)) / sum(increase(spillway_http_requests_total{${LOGIN}}[$__range])) / 0.005`,
          legend: 'left',
        },
      ],
    },
    {
      title: 'Logins by outcome',
      description:
        'ok and ticket are good; invalid_credentials is the users or an attack; busy and unavailable are ours.',
      unit: 'reqps',
      stacked: true,
      queries: [{ expr: rate(`spillway_http_requests_total{${LOGIN}}`, 'outcome'), legend: '{{outcome}}' }],
    },
    {
      title: 'Time to an answer',
      description:
        'From the head of a login request to the end of its answer, tickets included. Worry when p95 passes 2 s.',
      unit: 's',
      thresholds: { warn: 2, bad: 8 },
      queries: quantiles('spillway_http_request_duration_seconds', LOGIN),
    },
    {
      title: 'Tickets',
      description:
        'Given out instead of an answer, and what redeeming them came to. Expired ones are logins that were lost.',
      unit: 'reqps',
      width: 12,
      queries: [{ expr: rate('spillway_tickets_total', 'event'), legend: '{{event}}' }],
    },
    {
      title: 'How waits end',
      description: 'Requests that were held for a verdict: answered, given a ticket, left by the client, or failed.',
      unit: 'reqps',
      width: 12,
      queries: [{ expr: rate('spillway_wait_seconds_count', 'outcome'), legend: '{{outcome}}' }],
    },
  ],
}
