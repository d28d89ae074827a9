// The colours of reports, for light and dark.

export const palette = `
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
