import { base } from './api.js';
import { connect } from './topicast.min.js';

const tokenKey = 'topicast.console.token';
const userKey = 'topicast.console.user';
const topicsKey = 'topicast.console.topics';

/**
 * The console's connection: who it is, what it listens to, and the client that does so. Dispatches `state`, `message`, `direct`,
 * `subscriptions` and `note` events, with what they tell in `detail`.
 */
export class Session extends EventTarget {
  token = sessionStorage.getItem(tokenKey) ?? '';
  user = sessionStorage.getItem(userKey) ?? '';
  /** By topic or pattern: what is known of it. */
  subscriptions = new Map();
  #client;

  /** Connects, as somebody else or for the first time. */
  start({ token, user }) {
    const before = this.#client;
    this.token = token;
    this.user = user;
    sessionStorage.setItem(tokenKey, token);
    sessionStorage.setItem(userKey, user);
    const filters = before === undefined ? storedTopics() : [...this.subscriptions.keys()];
    this.#client = connect(base, {
      device: 'console',
      ...(token !== '' && { token }),
      ...(user !== '' && { user }),
    });
    this.#listen(this.#client);
    before?.close();
    this.#tell('state', { state: 'connecting' });
    this.subscriptions.clear();
    for (const filter of filters) this.#add(filter);
    this.#subscriptionsChanged();
  }

  get state() {
    return this.#client?.state ?? 'closed';
  }

  /** @throws TypeError for what is no topic and no pattern */
  subscribe(filter, last) {
    if (this.subscriptions.has(filter)) throw new TypeError(`${filter} is subscribed already`);
    this.#add(filter, last);
    this.#subscriptionsChanged();
  }

  unsubscribe(filter) {
    this.subscriptions.get(filter)?.end();
    this.subscriptions.delete(filter);
    this.#subscriptionsChanged();
  }

  /** Rejects with the client's error. */
  publish(topic, data) {
    return this.#client.publish(topic, data);
  }

  #add(filter, last) {
    const subscription = { messages: 0, offset: undefined, end: undefined };
    subscription.end = this.#client.subscribe(
      filter,
      (message) => {
        subscription.messages++;
        subscription.offset = message.offset ?? subscription.offset;
        this.#tell('message', { filter, message });
      },
      last === undefined ? {} : { last },
    );
    this.subscriptions.set(filter, subscription);
  }

  #listen(client) {
    client.on('state', (change) => client === this.#client && this.#tell('state', change));
    client.on('message', (message) => this.#tell('message', { filter: message.topic, message }));
    client.on('subscribed', ({ offset, topic }) => {
      const subscription = this.subscriptions.get(topic);
      if (subscription === undefined) return;
      subscription.offset = offset;
      this.#subscriptionsChanged();
    });
    client.on('refused', ({ code, final, reason, topic }) => {
      this.#note('bad', `${topic} was refused: ${reason ?? code}${final ? '' : '; asking again'}`);
      if (final) this.unsubscribe(topic);
    });
    client.on('gap', ({ from, to, topic }) =>
      this.#note('gap', `Gap in ${topic}: offsets ${from} to ${to} are lost for good`),
    );
    client.on('unrecovered', ({ topic }) =>
      this.#note('gap', `${topic} could not be resumed: messages may be missing`),
    );
    client.on('error', (error) => {
      // What ends the client is told with its state.
      if (client === this.#client && client.state !== 'closed') this.#note('bad', error.message);
    });
    client.onDirect((message) => this.#tell('direct', message));
  }

  #subscriptionsChanged() {
    sessionStorage.setItem(topicsKey, JSON.stringify([...this.subscriptions.keys()]));
    this.#tell('subscriptions');
  }

  #note(kind, text) {
    this.#tell('note', { kind, text });
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

function storedTopics() {
  const stored = JSON.parse(sessionStorage.getItem(topicsKey) ?? '[]');
  return Array.isArray(stored) ? stored.filter((topic) => typeof topic === 'string') : [];
}
