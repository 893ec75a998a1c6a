import { SignJWT } from 'jose';
import type { DemoUser } from './traffic.js';
import { User, type UserHooks } from './user.js';
import type { CodecName } from './verdict.js';

/** Handshakes under way at once: enough to keep a node busy, few enough for its backlog. */
const handshakesAtOnce = 64;
const heartbeatMs = 25_000;

/** JSON and MessagePack in turn. */
export function codecOf(index: number): CodecName {
  return index % 2 === 0 ? 'json' : 'msgpack';
}

/** All users of the data set, each with a connection of its own. */
export class Fleet {
  readonly #users: ReadonlyMap<string, User>;
  readonly #fail: (error: unknown) => void;
  readonly #returning = new Set<Promise<void>>();
  #heartbeat: NodeJS.Timeout | undefined;

  private constructor(users: readonly User[], fail: (error: unknown) => void) {
    this.#users = new Map(users.map((user) => [user.name, user]));
    this.#fail = fail;
  }

  /** Makes the users, each with a token that grants exactly its topics. Nobody is connected yet. */
  static async create(specs: readonly DemoUser[], secret: string, hooks: UserHooks): Promise<Fleet> {
    const key = new TextEncoder().encode(secret);
    const users: User[] = [];
    for (const [i, spec] of specs.entries()) {
      const token = await new SignJWT({ can: { sub: spec.topics } })
        .setProtectedHeader({ alg: 'HS256' })
        .setSubject(spec.user)
        .setExpirationTime('2h')
        .sign(key);
      users.push(new User(spec, i, codecOf(i), token, hooks));
    }
    return new Fleet(users, hooks.fail);
  }

  get connected(): number {
    let count = 0;
    for (const user of this.#users.values()) if (user.connected) count++;
    return count;
  }

  /** Connects everybody. @throws Error of the first that is not let in */
  async connect(signal: AbortSignal): Promise<void> {
    const waiting = [...this.#users.values()];
    const connectInTurn = async () => {
      for (let user = waiting.pop(); user !== undefined; user = waiting.pop()) {
        signal.throwIfAborted();
        await user.connect();
      }
    };
    await Promise.all(Array.from({ length: handshakesAtOnce }, connectInTurn));
    this.#heartbeat = setInterval(() => void this.barrier().catch(this.#fail), heartbeatMs);
  }

  cut(name: string): void {
    this.#user(name).cut();
  }

  /** Lets a user that was cut come back, in the background; `allBack` waits for it. */
  comeBack(name: string): void {
    const back = this.#user(name)
      .connect()
      .catch(this.#fail)
      .finally(() => this.#returning.delete(back));
    this.#returning.add(back);
  }

  async allBack(): Promise<void> {
    await Promise.all(this.#returning);
  }

  /** Resolves when whatever the node sent before has arrived, at every user. */
  async barrier(): Promise<void> {
    await Promise.all([...this.#users.values()].map((user) => user.barrier()));
  }

  close(): void {
    clearInterval(this.#heartbeat);
    for (const user of this.#users.values()) user.close();
  }

  #user(name: string): User {
    const user = this.#users.get(name);
    if (user === undefined) throw new Error(`no user ${name} in the data`);
    return user;
  }
}
