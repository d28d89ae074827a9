// The style of reports: of a storm, and, with more for their own parts, of the load tests.

/** The colours of reports, for light and dark. */
const palette = `
:root {
  --page: #ffffff;
  --panel: #f5f6f8;
  --ink: #1c2430;
  --soft: #5b6675;
  --line: #dde1e7;
  --accent: #0b67d0;
  --against: #d1495b;
  --others: #8a94a3;
  --ok: #2a9d62;
  --ticket: #4a90d9;
  --busy: #e9b44c;
  --timeout: #d1495b;
  --error: #7b2d3b;
  --part-1: #4269d0;
  --part-2: #e8a33d;
  --part-3: #d1495b;
  --part-4: #5fb3a3;
  --part-5: #3ca951;
  --part-6: #e07ba5;
  --part-7: #9270ca;
  --part-8: #8fb4e3;
  --part-9: #a1795b;
  --part-10: #9498a0;
  color-scheme: light dark;
}

@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161c;
    --panel: #1b212a;
    --ink: #e6eaf0;
    --soft: #9aa6b5;
    --line: #313a46;
    --accent: #58a6ff;
    --against: #f07178;
    --others: #778292;
    --ok: #45b87c;
    --ticket: #5aa2ee;
    --busy: #e0b050;
    --timeout: #e5636f;
    --error: #a8505f;
  }
}
`

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
