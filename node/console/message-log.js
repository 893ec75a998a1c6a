import { byId, element } from './dom.js';
import { count, milliseconds, timeOfDay } from './format.js';

const rowsMax = 500;
const textMax = 20_000;
const latenciesMax = 101;

/** The list of what came, the newest first. Drawn once a frame at most, however fast it comes. */
export class MessageLog {
  #list = byId('messages');
  #summary = byId('messages-summary');
  #waiting = [];
  #scheduled = false;
  #paused = false;
  #messages = 0;
  #gaps = 0;
  #latencies = [];
  /** The row of each message, since one message may come for several patterns. */
  #rows = new WeakMap();

  constructor() {
    byId('messages-clear').addEventListener('click', () => this.clear());
    byId('messages-pause').addEventListener('click', ({ currentTarget }) => {
      this.#paused = !this.#paused;
      currentTarget.setAttribute('aria-pressed', String(this.#paused));
      currentTarget.textContent = this.#paused ? 'Resume' : 'Pause';
      this.#schedule();
    });
    this.#draw();
  }

  /** @param latencyMs of the console's own messages, else undefined */
  message(filter, message, latencyMs) {
    const known = this.#rows.get(message);
    if (known !== undefined) {
      known.filters.push(filter);
      known.via?.replaceChildren(viaText(known));
      return;
    }
    const row = { kind: 'message', at: Date.now(), filters: [filter], message, latencyMs };
    this.#rows.set(message, row);
    this.#messages++;
    if (latencyMs !== undefined) this.#latencies = [latencyMs, ...this.#latencies].slice(0, latenciesMax);
    this.#add(row);
  }

  direct(message) {
    this.#messages++;
    this.#add({ kind: 'direct', at: Date.now(), message });
  }

  /** @param {'info' | 'bad' | 'gap'} kind */
  note(kind, text) {
    if (kind === 'gap') this.#gaps++;
    this.#add({ kind, at: Date.now(), text });
  }

  clear() {
    this.#waiting = [];
    this.#messages = 0;
    this.#gaps = 0;
    this.#latencies = [];
    this.#list.replaceChildren();
    this.#draw();
  }

  #add(row) {
    this.#waiting.push(row);
    if (this.#waiting.length > rowsMax) this.#waiting.shift();
    this.#schedule();
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#draw();
    });
  }

  #draw() {
    if (!this.#paused) {
      this.#list.prepend(...this.#waiting.reverse().map(rowElement));
      this.#waiting = [];
      while (this.#list.childElementCount > rowsMax) this.#list.lastElementChild.remove();
    }
    // Notes alone do not say what to do next.
    byId('messages-empty').hidden = this.#messages > 0;
    this.#summary.textContent = this.#summaryText();
  }

  #summaryText() {
    const parts = [`${count(this.#messages)} ${this.#messages === 1 ? 'message' : 'messages'}`];
    if (this.#gaps > 0) parts.push(`${count(this.#gaps)} ${this.#gaps === 1 ? 'gap' : 'gaps'}`);
    const sorted = this.#latencies.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    if (median !== undefined) parts.push(`own latency, median ${milliseconds(median)}`);
    if (this.#paused && this.#waiting.length > 0) parts.push(`${count(this.#waiting.length)} held back`);
    return parts.join(' · ');
  }
}

function rowElement(row) {
  const time = element('time', { class: 'time' }, timeOfDay(row.at));
  if (row.text !== undefined) {
    return element('li', { class: `entry note ${row.kind}` }, time, element('p', {}, row.text));
  }
  if (row.kind === 'direct') {
    const id = row.message.id === undefined ? 'not queued' : `id ${row.message.id}`;
    const head = element(
      'p',
      { class: 'what' },
      element('span', { class: 'badge' }, 'direct'),
      element('span', { class: 'meta' }, id),
    );
    return element('li', { class: 'entry' }, time, head, dataElement(row.message.data));
  }
  row.via = element('span', { class: 'meta' }, viaText(row));
  const { latencyMs, message } = row;
  const head = element('p', { class: 'what' }, element('span', { class: 'topic' }, message.topic), row.via);
  if (message.offset !== undefined) {
    head.append(element('span', { class: 'meta offset' }, `offset ${message.offset}`));
  }
  if (latencyMs !== undefined) {
    head.append(element('span', { class: 'meta latency' }, milliseconds(latencyMs)));
  }
  return element('li', { class: 'entry' }, time, head, dataElement(message.data));
}

function viaText({ filters, message }) {
  const patterns = filters.filter((filter) => filter !== message.topic);
  return patterns.length === 0 ? '' : `via ${patterns.join(', ')}`;
}

function dataElement(data) {
  const text = JSON.stringify(data) ?? String(data);
  const shown =
    text.length > textMax ? `${text.slice(0, textMax)}… (${count(text.length)} characters)` : text;
  return element('pre', { class: 'data' }, shown);
}
