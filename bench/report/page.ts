import type { Machine } from '../result/result.js';
import { html, trusted, type Html, type HtmlPart } from './markup.js';
import { pageStyle } from './page-style.js';

export interface Page {
  readonly title: string;
  /** What the reader looks at, in a sentence or two. */
  readonly lead?: string;
  /** Below the title: name and value. `machineFact` makes one of a machine. */
  readonly facts: readonly Fact[];
  readonly sections: readonly Section[];
}

export type Fact = readonly [name: string, value: string];

export interface Section {
  /** Within the page, for links: letters, digits and dashes. */
  readonly id: string;
  readonly title: string;
  readonly body: HtmlPart;
}

/**
 * A page that needs nothing but itself: no scripts, no other files, light and dark as the reader's screen is, readable on a phone and on paper.
 * Everything that is not HTML already is escaped, and the page forbids the browser to load or run anything besides.
 */
export function pageHtml({ facts, lead, sections, title }: Page): string {
  const links = sections.length < 2 ? undefined : html`<nav>${sections.map(link)}</nav>`;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'" />
        <title>${title}</title>
        <style>
          ${trusted(pageStyle)}
        </style>
      </head>
      <body>
        <header>
          <h1>${title}</h1>
          ${lead === undefined ? undefined : html`<p>${lead}</p>`} ${factsHtml(facts)} ${links}
        </header>
        <main>${sections.map(sectionHtml)}</main>
      </body>
    </html> `.text;
}

/** The machine on which something was measured, in a line. */
export function machineFact({ cores, cpu, memoryBytes, node, os }: Machine): Fact {
  const gib = (memoryBytes / 2 ** 30).toLocaleString('en-US', { maximumFractionDigits: 1 });
  return ['machine', `${cpu}, ${cores} cores, ${gib} GiB · ${os} · Node.js ${node}`];
}

export function factsHtml(facts: readonly Fact[]): Html {
  return html`<dl class="facts">
    ${facts.map(
      ([name, value]) =>
        html`<dt>${name}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`;
}

/** Charts beside each other where there is room. No charts: nothing. */
export function chartsHtml(charts: readonly Html[]): Html | undefined {
  return charts.length === 0 ? undefined : html`<div class="charts">${charts}</div>`;
}

/** @param leftColumns so many of the first columns are aligned left, the others right */
export function tableHtml(
  head: readonly HtmlPart[],
  body: readonly (readonly HtmlPart[])[],
  leftColumns: number,
): Html {
  const side = (i: number): string => (i < leftColumns ? 'left' : 'right');
  const heads = head.map((cell, i) => html`<th class="${side(i)}${longHead(cell)}">${cell}</th>`);
  const rows = body.map(
    (cells) =>
      html`<tr>
        ${cells.map((cell, i) => html`<td class="${side(i)}">${cell}</td>`)}
      </tr> `,
  );
  return html`<div class="wide">
    <table>
      <thead>
        <tr>
          ${heads}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div> `;
}

/** Else the browser makes a column as narrow as its longest word, and its head as high as the screen. */
function longHead(cell: HtmlPart): string {
  return typeof cell === 'string' && cell.length > 16 ? ' long' : '';
}

/** Something that a reader must not overlook. `bad`: it has failed; `warn`: it may not be believed. No lines: nothing. */
export function noticeHtml(kind: 'bad' | 'warn', title: string, lines: readonly string[]): Html | undefined {
  if (lines.length === 0) return undefined;
  return html`<div class="notice ${kind}">
    <strong>${title}</strong>
    <ul>
      ${lines.map((line) => html`<li>${line}</li>`)}
    </ul>
  </div> `;
}

function link({ id, title }: Section): Html {
  return html`<a href="#${id}">${title}</a> `;
}

function sectionHtml({ body, id, title }: Section): Html {
  return html`<section id="${id}">
    <h2>${title}</h2>
    ${body}
  </section> `;
}
