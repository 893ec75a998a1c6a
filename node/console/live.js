import { call } from './api.js';
import { byId, element } from './dom.js';
import { count } from './format.js';
import { MessageLog } from './message-log.js';

/** An own message that has not come back after this long is not waited for any more. */
const ownMsMax = 60_000;

/** The Live view. */
export function startLive(session) {
  const log = new MessageLog();
  const own = new OwnMessages();
  session.addEventListener('message', ({ detail: { filter, message } }) => {
    log.message(filter, message, own.latencyOf(message));
    countChanged(session, filter);
  });
  session.addEventListener('direct', ({ detail }) => log.direct(detail));
  session.addEventListener('note', ({ detail: { kind, text } }) => log.note(kind, text));
  session.addEventListener('subscriptions', () => drawSubscriptions(session));
  watchConnection(session, log);
  onSubmit('subscribe', () => {
    const topic = byId('subscribe-topic').value.trim();
    const last = byId('subscribe-last').value;
    session.subscribe(topic, last === '' ? undefined : Number(last));
    return '';
  });
  onSubmit('publish', async () => {
    const topic = byId('publish-topic').value.trim();
    const data = readJson('publish-data');
    own.sent(topic, data);
    const { offset } = await session.publish(topic, data);
    return offset === undefined ? 'Sent: a live topic' : `Stored at offset ${offset}`;
  });
  onSubmit('push', async () => {
    const user = byId('push-user').value.trim();
    const body = JSON.stringify(readJson('push-data'));
    const answer = await call(`/v1/users/${encodeURIComponent(user)}/messages`, {
      body,
      token: session.token,
    });
    return answer.status === 'queued'
      ? 'Queued: the user is not connected'
      : `Sent to ${answer.sessions} ${answer.sessions === 1 ? 'session' : 'sessions'}`;
  });
}

/** Lost connections are part of the story that the log tells. */
function watchConnection(session, log) {
  let wasOpen = false;
  let everOpen = false;
  session.addEventListener('state', ({ detail: { error, reason, state } }) => {
    if (state === 'open') log.note('info', everOpen ? 'Connected again' : 'Connected');
    if (state === 'waiting' && wasOpen) log.note('bad', `Connection lost: ${reason || 'no reason given'}`);
    if (state === 'closed') log.note('bad', whyClosed(session, error));
    wasOpen = state === 'open';
    everOpen ||= wasOpen;
  });
}

function whyClosed({ token }, error) {
  if (error?.code !== 'unauthorized') return `Closed for good: ${error?.message ?? 'no reason given'}`;
  return token === '' ? 'This node wants a token: enter one under Access' : 'The token was refused';
}

/** Runs `act` when the form is sent, by button, Enter, or Ctrl-Enter in its text area, and shows what it says or throws. */
function onSubmit(name, act) {
  const form = byId(`${name}-form`);
  const result = byId(`${name}-result`);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    let text;
    try {
      text = await act();
      result.classList.remove('bad');
    } catch (error) {
      text = error.message;
      result.classList.add('bad');
    }
    result.textContent = text;
  });
  form.querySelector('textarea')?.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

function readJson(id) {
  try {
    return JSON.parse(byId(id).value);
  } catch (cause) {
    throw new Error(`Not JSON: ${cause.message}`, { cause });
  }
}

function drawSubscriptions(session) {
  const chips = [...session.subscriptions].map(([filter, subscription]) =>
    element(
      'li',
      { class: 'chip', 'data-filter': filter },
      element('span', { class: 'mono name' }, filter),
      element('span', { class: 'meta' }, count(subscription.messages)),
      element(
        'button',
        {
          type: 'button',
          'aria-label': `Unsubscribe from ${filter}`,
          title: 'Unsubscribe',
          click: () => session.unsubscribe(filter),
        },
        '×',
      ),
    ),
  );
  byId('subscriptions').replaceChildren(...chips);
}

function countChanged(session, filter) {
  const subscription = session.subscriptions.get(filter);
  const chip = [...byId('subscriptions').children].find(({ dataset }) => dataset.filter === filter);
  if (subscription !== undefined && chip !== undefined) {
    chip.querySelector('.meta').textContent = count(subscription.messages);
  }
}

/** When the console sent what it receives: the one thing whose whole way it can measure with one clock. */
class OwnMessages {
  #sent = [];
  #latencies = new WeakMap();

  sent(topic, data) {
    const at = performance.now();
    this.#sent = this.#sent.filter((other) => at - other.at < ownMsMax);
    this.#sent.push({ topic, text: JSON.stringify(data), at });
  }

  latencyOf(message) {
    if (this.#latencies.has(message)) return this.#latencies.get(message);
    if (this.#sent.length === 0) return undefined;
    const text = JSON.stringify(message.data);
    const index = this.#sent.findIndex((sent) => sent.topic === message.topic && sent.text === text);
    if (index < 0) return undefined;
    const latencyMs = performance.now() - this.#sent[index].at;
    this.#sent.splice(index, 1);
    this.#latencies.set(message, latencyMs);
    return latencyMs;
  }
}
