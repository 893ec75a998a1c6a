import { call } from './api.js';
import { byId, element } from './dom.js';
import { compact, count, duration, rate } from './format.js';
import { Rates } from './rates.js';
import { sparkline } from './sparkline.js';

const pollMs = 2000;
const samplesMax = 30;

/** What the protocol's and the common WebSocket codes mean. */
const closeMeanings = {
  1000: 'normal',
  1001: 'page left',
  1005: 'no code',
  1006: 'line lost',
  1009: 'frame too large',
  1011: 'internal',
  4000: 'draining',
  4001: 'slow consumer',
  4002: 'token expired',
  4003: 'idle',
  4004: 'internal',
  4500: 'invalid frames',
  4501: 'replaced',
  4502: 'kicked',
  4503: 'too many connections',
  other: 'made up by clients',
};

/** Of all nodes together: counter, name, and whether anything but zero deserves a look. */
const health = [
  ['gapsRepaired', 'Missed messages repaired', false],
  ['gapsLost', 'Gaps lost for good', true],
  ['resyncs', 'Slow readers told to resync', false],
  ['slowCloses', 'Slow readers closed', true],
  ['directPushed', 'Direct messages taken', false],
  ['directAcked', 'Direct messages acknowledged', false],
  ['refused', 'Handshakes refused', false],
  ['frameErrors', 'Frames refused', false],
  ['bodiesDropped', 'Unreadable bodies dropped', true],
  ['faults', 'Faults', true],
];

/** The Cluster view. Asks only while it is looked at. */
export class ClusterView {
  #session;
  #shown = false;
  #timer;
  #generation = 0;
  #series;

  constructor(session) {
    this.#session = session;
    this.#reset();
    document.addEventListener('visibilitychange', () => this.#poll());
  }

  show(shown) {
    this.#shown = shown;
    this.#poll();
  }

  /** Somebody else is asking from now on. */
  restart() {
    this.#reset();
    byId('cluster-body').hidden = true;
    notice('Asking the node…');
    this.#poll();
  }

  #reset() {
    this.#series = {
      connections: [],
      users: [],
      in: new Rates(samplesMax, (c) => c.publishedLive + c.publishedDurable),
      out: new Rates(samplesMax, (c) => c.deliveries),
    };
  }

  async #poll() {
    clearTimeout(this.#timer);
    const generation = ++this.#generation;
    if (!this.#shown || document.hidden) return;
    try {
      const stats = await call('/v1/stats', { token: this.#session.token });
      if (generation === this.#generation) this.#draw(stats);
    } catch (error) {
      if (generation !== this.#generation) return;
      notice(explain(error));
      // Only another token helps.
      if (error.status === 401 || error.status === 403) {
        byId('cluster-body').hidden = true;
        return;
      }
    }
    this.#timer = setTimeout(() => this.#poll(), pollMs);
  }

  #draw(stats) {
    const { missingNodes = 0 } = stats;
    notice(missingNodes === 0 ? '' : `Without ${missingNodes} of the nodes, which did not answer in time.`);
    byId('cluster-body').hidden = false;
    this.#drawTiles(stats);
    drawNodes(stats.nodes);
    drawTopics(stats.topics);
    drawHealth(stats.nodes);
    drawCloses(stats.nodes);
  }

  #drawTiles({ connections, nodes, users }) {
    const series = this.#series;
    const now = performance.now();
    series.in.push(now, nodes);
    series.out.push(now, nodes);
    series.connections = [...series.connections, connections].slice(-samplesMax);
    // Absent when nobody knows: a cluster without Redis, or one whose Redis is away.
    if (users !== undefined) series.users = [...series.users, users].slice(-samplesMax);
    byId('tiles').replaceChildren(
      tile('connections', 'Connections', compact(connections), series.connections),
      tile('users', 'Users online', users === undefined ? '–' : compact(users), series.users),
      tile('in', 'Published a second', rateText(series.in), series.in.values),
      tile('out', 'Delivered a second', rateText(series.out), series.out.values),
    );
  }
}

function rateText({ latest }) {
  return latest === undefined ? '–' : rate(latest);
}

function tile(id, name, value, values) {
  return element(
    'li',
    { class: 'card tile', 'data-tile': id },
    element('span', { class: 'tile-name' }, name),
    element('strong', { class: 'tile-value' }, value),
    sparkline(values, samplesMax),
  );
}

function drawNodes(nodes) {
  const rows = nodes.map((node) => [
    element('span', { class: 'mono' }, node.id),
    nodeState(node),
    number(count(node.connections)),
    number(count(node.channels)),
    number(node.counters === undefined ? '–' : count(publishedBy(node))),
    number(node.counters === undefined ? '–' : count(node.counters.deliveries)),
    duration(node.uptimeSec),
    node.version,
  ]);
  const head = ['Node', 'State', '#Connections', '#Topics', '#Published', '#Delivered', 'Up', 'Version'];
  byId('nodes').replaceChildren(...table(head, rows));
}

function publishedBy({ counters }) {
  return counters.publishedLive + counters.publishedDurable;
}

function nodeState({ draining, ready }) {
  const [kind, text] = draining ? ['warn', 'draining'] : ready ? ['good', 'ready'] : ['bad', 'not ready'];
  return element('span', { class: `status ${kind}` }, text);
}

function drawTopics(topics) {
  const rows = topics.map(({ filters, messages, messagesPerSec, subscribers }) => [
    element('span', { class: 'mono' }, filters.join(', ')),
    number(rate(messagesPerSec)),
    number(count(messages)),
    number(count(subscribers)),
  ]);
  byId('topics').replaceChildren(
    ...(rows.length > 0 ? table(['Topic or pattern', '#Per second', '#Messages', '#Subscribers'], rows) : []),
  );
  byId('topics-empty').hidden = rows.length > 0;
}

function drawHealth(nodes) {
  const facts = health.map(([key, name, isAlarm]) => {
    const total = nodes.reduce((sum, { counters }) => sum + (counters?.[key] ?? 0), 0);
    return fact(name, count(total), isAlarm && total > 0 ? 'bad' : '');
  });
  byId('health').replaceChildren(...facts);
}

function drawCloses(nodes) {
  const totals = new Map();
  for (const [code, closes] of nodes.flatMap(({ closed = {} }) => Object.entries(closed))) {
    totals.set(code, (totals.get(code) ?? 0) + closes);
  }
  const sorted = [...totals].sort(([a], [b]) => a.localeCompare(b));
  byId('closes').replaceChildren(
    ...sorted.map(([code, closes]) =>
      fact([code, closeMeanings[code]].filter(Boolean).join(' · '), count(closes), ''),
    ),
  );
  byId('closes-empty').hidden = sorted.length > 0;
}

function fact(name, value, kind) {
  return element('div', { class: `fact ${kind}` }, element('dt', {}, name), element('dd', {}, value));
}

/** Heads that begin with # are of numbers. Each cell knows its head, for where there is no room for columns. */
function table(heads, rows) {
  const names = heads.map((head) => head.replace(/^#/, ''));
  const headCells = names.map((name, i) =>
    element('th', { scope: 'col', class: heads[i].startsWith('#') ? 'number' : '' }, name),
  );
  const bodyRows = rows.map((values) => {
    const cells = values.map((value) =>
      value instanceof HTMLTableCellElement ? value : element('td', {}, value),
    );
    for (const [i, cell] of cells.entries()) cell.dataset.label = names[i];
    return element('tr', {}, ...cells);
  });
  return [element('thead', {}, element('tr', {}, ...headCells)), element('tbody', {}, ...bodyRows)];
}

function number(text) {
  return element('td', { class: 'number' }, text);
}

function notice(text) {
  const place = byId('cluster-notice');
  place.hidden = text === '';
  place.textContent = text;
}

function explain({ message, status }) {
  if (status === 401) {
    return 'The cluster view needs a token with the admin grant, or the API key. Enter one under Access.';
  }
  if (status === 403) {
    return 'This token has no admin grant, which the cluster view needs. Enter another one under Access.';
  }
  return `${message} Trying again.`;
}
