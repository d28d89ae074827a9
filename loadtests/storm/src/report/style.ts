// The style of reports: of a storm, and, with more for their own parts, of the load tests.
import { palette } from './palette.ts'

export const style = `${palette}
body {
  margin: 0;
  background: var(--page);
  color: var(--ink);
  font:
    16px / 1.55 system-ui,
    -apple-system,
    "Segoe UI",
    sans-serif;
}

header,
main {
  max-width: 860px;
  margin: 0 auto;
  padding: 0 20px;
}

header {
  padding-top: 40px;
}

h1 {
  margin: 0 0 8px;
  font-size: 34px;
  line-height: 1.2;
}

h2 {
  margin: 0 0 4px;
  font-size: 24px;
}

h3 {
  margin: 32px 0 0;
  font-size: 18px;
}

h4 {
  margin: 24px 0 4px;
  font-size: 14px;
}

.lead,
.question {
  color: var(--soft);
  font-size: 18px;
}

.question {
  margin-top: 0;
  font-size: 16px;
}

.settings,
.origin,
caption {
  color: var(--soft);
  font-size: 13px;
  overflow-wrap: anywhere;
}

section {
  margin-top: 56px;
  padding-top: 24px;
  border-top: 1px solid var(--line);
}

.warning {
  padding: 10px 14px;
  border-left: 4px solid var(--busy);
  background: var(--panel);
}

.table {
  overflow-x: auto;
}

table {
  width: 100%;
  border-collapse: collapse;
  font-size: 14px;
  font-variant-numeric: tabular-nums;
}

caption {
  padding-top: 6px;
  caption-side: bottom;
  text-align: left;
}

th,
td {
  padding: 7px 8px;
  border-bottom: 1px solid var(--line);
  text-align: right;
  white-space: nowrap;
}

thead th {
  vertical-align: bottom;
  font-size: 12px;
  white-space: normal;
}

th:first-child {
  text-align: left;
  font-weight: 500;
}

.legend {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 16px;
  margin: 8px 0;
  font-size: 13px;
}

.legend i {
  display: inline-block;
  width: 11px;
  height: 11px;
  margin-right: 6px;
  border-radius: 3px;
}

.chart svg {
  --plot-background: var(--page);
  display: block;
  width: 100%;
  height: auto;
  font-family: inherit;
}

code {
  color: var(--soft);
  font-size: 0.85em;
}

a {
  color: var(--accent);
}

@media (max-width: 640px) {
  h1 {
    font-size: 27px;
  }

  /* Many columns: the name stays in sight while the rest is moved under it. */
  th:first-child {
    position: sticky;
    left: 0;
    min-width: 110px;
    max-width: 110px;
    background: var(--page);
    white-space: normal;
    overflow-wrap: anywhere;
  }
}

@media print {
  body {
    font-size: 11pt;
  }

  section,
  h4,
  .chart {
    break-inside: avoid;
  }

  h3,
  h4,
  .legend {
    break-after: avoid;
  }

  .table {
    overflow: visible;
  }

  table {
    font-size: 8pt;
    break-inside: avoid;
  }
}
`
