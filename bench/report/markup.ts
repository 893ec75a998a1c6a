/** A piece of HTML that may go into a page as it is. Only `html` and `trusted` make one, so that text cannot get there unescaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

export type HtmlPart = Html | string | number | undefined | readonly HtmlPart[];

/** A template whose values are escaped, but for those that are HTML already. Lists are joined; undefined is nothing. */
export function html(texts: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  return new Html(texts.map((text, i) => text + markup(parts[i])).join(''));
}

/** @param text of HTML that holds nothing which came from outside unescaped */
export function trusted(text: string): Html {
  return new Html(text);
}

/** For text between tags and for quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

function markup(part: HtmlPart): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part));
  return part.map(markup).join('');
}
