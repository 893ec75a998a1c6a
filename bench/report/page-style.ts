/** So many colours of series has a page, `--c1` and on. More series are told apart by their dashes. */
export const seriesColours = 8;

/** Of charts; the page stretches them. It is about what a phone shows, so that their text is not made small there. */
export const drawingWidth = 400;

/**
 * Charts draw with these variables, so one drawing serves the light and the dark page. Paper is light. The colours of series keep apart for people
 * who see red and green alike.
 */
export const pageStyle = `
:root { color-scheme: light; --bg: #fff; --card: #f8f9fb; --ink: #1b2330; --muted: #5b6675; --line: #d9dee6;
  --bad: #b3261e; --bad-bg: #fdecea; --warn: #8a5a00; --warn-bg: #fff4dc;
  --c1: #2463c9; --c2: #d9720f; --c3: #0f8a6a; --c4: #b0388f; --c5: #7a8794; --c6: #8a6d1b; --c7: #4a3fae; --c8: #2a9bb8; }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --bg: #12161d; --card: #1a2029; --ink: #e5e9ef; --muted: #9aa6b5; --line: #333d4a;
    --bad: #ff9a90; --bad-bg: #3a1a19; --warn: #ffc95c; --warn-bg: #35290f;
    --c1: #6ea3f7; --c2: #f59b4c; --c3: #43c59e; --c4: #e57fca; --c5: #a3b0bd; --c6: #cfb04e; --c7: #a49bf5; --c8: #62c8e0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1rem 3rem; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p { margin: .5rem 0; max-width: 50rem; }
small, .facts { color: var(--muted); }
a { color: var(--c1); }
nav a { margin-right: 1rem; display: inline-block; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .75rem 0; font-size: .9rem; }
.facts dt { font-weight: 600; }
.facts dd { margin: 0; min-width: 0; }
.notice { border-left: 4px solid; padding: .5rem .75rem; margin: .75rem 0; border-radius: 0 4px 4px 0; }
.notice ul { margin: 0; padding-left: 1.1rem; }
.bad { color: var(--bad); background: var(--bad-bg); }
.warn { color: var(--warn); background: var(--warn-bg); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1rem; margin: 1rem 0; align-items: start; }
figure { margin: 0; padding: .6rem; background: var(--card); border: 1px solid var(--line); border-radius: 6px; min-width: 0; max-width: 34rem; }
figcaption { font-weight: 600; line-height: 1.3; margin-bottom: .5rem; }
figcaption small { display: block; font-weight: 400; }
figure svg { display: block; width: 100%; height: auto; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; margin: .5rem 0 0; padding: 0; font-size: .85rem; }
.key svg { display: inline-block; width: 1.5rem; height: .7rem; margin-right: .35rem; }
.wide { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; white-space: nowrap; overflow-wrap: normal; }
th { color: var(--muted); font-weight: 600; vertical-align: bottom; white-space: normal; overflow-wrap: normal; }
.long { min-width: 7.5rem; }
.left { text-align: left; }
td.left:first-child, th.left:first-child { position: sticky; left: 0; background: var(--bg); }
td small { display: block; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--muted); }
strong.bad, strong.warn { padding: 0 .3rem; border-radius: 3px; }
@media print {
  @page { size: landscape; margin: 12mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  figure, tr, .notice { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .charts { grid-template-columns: 1fr 1fr 1fr; }
  .wide { overflow: visible; }
  table { font-size: 7pt; }
  .long { min-width: 0; }
  th, td { padding: .15rem .25rem; white-space: normal; }
  nav { display: none; }
}
`;
