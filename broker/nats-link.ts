import { readFileSync } from 'node:fs';
import {
  connect,
  credsAuthenticator,
  Events,
  type ConnectionOptions,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type Subscription,
} from 'nats';
import { unavailable } from './errors.js';
import { TopicSubscription, type SubscriptionOwner } from './nats-subscription.js';

export interface NatsSettings {
  /** `nats://host:port`, with `user:password@` or `token@` before the host if wanted, which then goes for all. */
  readonly servers: readonly string[];
  /** Shown by the server's monitoring, so that an operator finds the node behind a connection. */
  readonly name: string;
  /** Path of a credentials file. */
  readonly creds?: string;
  /** Path of a PEM file: the authority that the server's certificate is checked against. */
  readonly tlsCa?: string;
}

/** How often the client and the server check on each other; two missed pings end the connection. */
const pingMs = 5000;
const requestMsMax = 5000;
/** The server's number for "insufficient resources". */
export const insufficientResources = 10023;

/** "replicas > 1 not supported in non-clustered mode", "no suitable peers for placement". */
const tooFewServers = new Set([insufficientResources, 10074, 10005]);

/** An answer of the JetStream API that is an error. */
export class JetStreamError extends Error {
  readonly status: number;
  /** The number of the error in the server's list; 0 when it gave none. */
  readonly number: number;

  constructor(status: number, number: number, description: string) {
    super(`JetStream: ${description}`);
    this.name = 'JetStreamError';
    this.status = status;
    this.number = number;
  }
}

/** Whether more copies were wanted than there are servers for. */
export function isTooFewServers(error: unknown): boolean {
  return error instanceof JetStreamError && tooFewServers.has(error.number);
}

/** One connection to NATS that is kept for ever: the client redials without end, and says when it is gone and back. */
export class NatsLink {
  readonly nc: NatsConnection;
  readonly #watchers: ((connected: boolean) => void)[] = [];
  #connected = true;
  #closing = false;

  #taking: Promise<void> | undefined;

  private constructor(nc: NatsConnection) {
    this.nc = nc;
    // One follower for all who watch, from the start: a loss that nobody watches yet counts too. It ends with the connection, which ends only by `close`.
    void this.#follow();
  }

  /** @throws BrokerError `unavailable` */
  static async open(settings: NatsSettings): Promise<NatsLink> {
    try {
      return new NatsLink(await connect(connectionOptions(settings)));
    } catch (error) {
      throw unavailable(
        `cannot connect to NATS: ${error instanceof Error ? error.message : 'unknown'}`,
        error,
      );
    }
  }

  get connected(): boolean {
    return this.#connected && !this.nc.isClosed();
  }

  /** Calls back at each loss and return of the connection. Everything sent before a loss may be lost. */
  watch(onConnected: (connected: boolean) => void): void {
    this.#watchers.push(onConnected);
  }

  /**
   * A subscription whose callback cannot harm the connection: the client ends its reader when a callback throws, and then hears nothing any more.
   * @param onError also told of what the server refuses
   */
  subscribe(
    subject: string,
    onMessage: (message: Msg) => void,
    onError: (error: unknown) => void,
    max?: number,
  ): Subscription {
    return this.nc.subscribe(subject, {
      ...(max !== undefined && { max }),
      callback: (error, message) => {
        if (error !== null) return onError(error);
        try {
          onMessage(message);
        } catch (thrown) {
          onError(thrown);
        }
      },
    });
  }

  /** The same for one of very many; `owner` tells them apart by `key`. */
  subscribeTopic(subject: string, key: string, owner: SubscriptionOwner): TopicSubscription {
    return new TopicSubscription(this.nc, subject, key, owner);
  }

  /**
   * Calls the JetStream API, which the leader of the asset answers.
   * @throws JetStreamError for an error that it answers; BrokerError `unavailable` when nobody does
   */
  async api<T>(subject: string, request?: unknown, msMax = requestMsMax): Promise<T> {
    const body = request === undefined ? '' : JSON.stringify(request);
    const text = new TextDecoder().decode(await this.request(`$JS.API.${subject}`, body, undefined, msMax));
    const answer = JSON.parse(text) as T & {
      error?: { code: number; err_code?: number; description?: string };
    };
    if (answer.error === undefined) return answer;
    const { code, description, err_code } = answer.error;
    // No leader yet. (That resources do not suffice has the same code, and a number of its own.)
    if (code === 503 && err_code !== insufficientResources) {
      throw unavailable(`JetStream: ${description ?? 'unavailable'}`);
    }
    throw new JetStreamError(code, err_code ?? 0, description ?? 'unknown error');
  }

  /** @throws BrokerError `unavailable` */
  async request(
    subject: string,
    body: string | Uint8Array,
    headers?: MsgHdrs,
    msMax = requestMsMax,
  ): Promise<Uint8Array> {
    if (!this.connected) throw unavailable('NATS is out of reach');
    try {
      const options = { timeout: msMax, ...(headers !== undefined && { headers }) };
      return (await this.nc.request(subject, body, options)).data;
    } catch (error) {
      throw unavailable('NATS does not answer', error);
    }
  }

  /**
   * Resolves when the server has read everything that was handed over before: one that hangs without closing its connection takes nothing. Those who ask in
   * one turn of the event loop share a question.
   * @throws BrokerError `unavailable`: it is not known whether it has
   */
  taken(): Promise<void> {
    this.#taking ??= new Promise((resolve, reject) => {
      const fail = (error?: unknown): void => reject(unavailable('NATS does not answer', error));
      setImmediate(() => {
        this.#taking = undefined;
        const timer = setTimeout(fail, requestMsMax);
        void this.nc
          .flush()
          .then(resolve, fail)
          .finally(() => clearTimeout(timer));
      });
    });
    return this.#taking;
  }

  async #follow(): Promise<void> {
    for await (const { type } of this.nc.status()) {
      if (type !== Events.Disconnect && type !== Events.Reconnect) continue;
      this.#connected = type === Events.Reconnect;
      if (this.#closing) continue;
      for (const watcher of this.#watchers) watcher(this.#connected);
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.nc.drain().catch(() => this.nc.close());
  }
}

function connectionOptions({ creds, name, servers, tlsCa }: NatsSettings): ConnectionOptions {
  return {
    servers: servers.map((server) =>
      server.replace(userInfo, (_, scheme: string | undefined) => scheme ?? ''),
    ),
    ...loginIn(servers),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 500,
    pingInterval: pingMs,
    maxPingOut: 2,
    noEcho: false,
    // A server that refuses the credentials for a while, as during their exchange, must not end the connection for good.
    ignoreAuthErrorAbort: true,
    // Read again at each dial, since they may have been exchanged meanwhile.
    ...(creds !== undefined && {
      authenticator: (nonce?: string) => credsAuthenticator(readFileSync(creds))(nonce),
    }),
    ...(tlsCa !== undefined && { tls: { caFile: tlsCa } }),
  };
}

const userInfo = /^([a-z]+:\/\/)?[^/@]+@/i;

/** The client ignores what stands before the host, where everybody writes it. */
function loginIn(servers: readonly string[]): Pick<ConnectionOptions, 'user' | 'pass' | 'token'> {
  const login = servers.map((server) => /^(?:[a-z]+:\/\/)?([^/@]+)@/i.exec(server)?.[1]).find(Boolean);
  if (login === undefined) return {};
  const [name = '', ...rest] = login.split(':');
  const decoded = decodeURIComponent(name);
  return rest.length === 0 ? { token: decoded } : { user: decoded, pass: decodeURIComponent(rest.join(':')) };
}
