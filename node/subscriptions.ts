import type { TopicRequest } from '../protocol/frames.js';
import type { Limits } from '../protocol/limits.js';
import type { Position } from '../protocol/position.js';
import { formatPosition } from '../protocol/position.js';
import { isPattern, namespaceOf, parseFilter } from '../protocol/topic.js';
import type { ErrorCode } from '../protocol/codes.js';
import type { TopicBus } from '../broker/bus.js';
import { Attachment, type Member } from './attachment.js';
import type { Channels } from './channels.js';
import { partition, type Group } from './partition.js';
import type { Session } from './session.js';
import { SubscribeAnswer } from './subscribe-answer.js';

/** Adds to and takes from what sessions listen to. Every session hears each message once, whatever it names. */
export class Subscriptions {
  readonly #channels: Channels;
  readonly #bus: Pick<TopicBus, 'floor'>;
  readonly #limits: Pick<Limits, 'topicsMax' | 'patternsMax'>;

  constructor(
    channels: Channels,
    bus: Pick<TopicBus, 'floor'>,
    limits: Pick<Limits, 'topicsMax' | 'patternsMax'>,
  ) {
    this.#channels = channels;
    this.#bus = bus;
    this.#limits = limits;
  }

  /** Starts each request that is well-formed and granted; the outcome of each is told in `subscribed`. Naming a topic again restarts it. */
  subscribe(session: Session, requests: readonly TopicRequest[], req: number | undefined): void {
    // Its end has let go of everything already: what it got now would be held for good.
    if (session.isClosed) return;
    if (requests.length === 0) {
      // A frame gets its answer, also when it asks for nothing.
      if (req !== undefined) session.send({ type: 'subscribed', req, topics: [] });
      return;
    }
    const answer = new SubscribeAnswer((frame) => session.send(frame), requests.length, req);
    const held = new Set(filtersOf(session));
    const added = new Map<string, Member>();
    for (const request of requests) {
      const refused = this.#refusal(session, request.topic, held);
      if (refused !== undefined) {
        void answer.add({ topic: request.topic, error: refused });
        continue;
      }
      const filter = this.#channels.ownName(request.topic);
      held.add(filter);
      const pending = { request, answer, told: undefined };
      added.set(filter, { filter, cursor: undefined, pending });
    }
    this.#rearrange(session, added, new Set());
  }

  /** Ends subscriptions; what was accepted for them before is sent first. Unknown ones are ignored. */
  unsubscribe(session: Session, filters: readonly string[]): void {
    this.#rearrange(session, new Map(), new Set(filters));
  }

  /** Lets go of everything at once: the session has closed or has to resync. */
  abandonAll(session: Session): void {
    const attachments = session.attachments;
    session.attachments = [];
    for (const attachment of attachments) {
      attachment.abandon();
      for (const member of attachment.members) member.pending?.answer.withdraw(member.filter);
      this.#channels.release(attachment.channel);
    }
  }

  /**
   * Per durable namespace the position up to which all of the session's topics in it have been sent. A namespace in which something is
   * still being replayed has none.
   */
  floors(session: Session): Record<string, string> | undefined {
    const floors = new Map<string, Position | undefined>();
    for (const { channel, live } of session.attachments) {
      if (channel.feed === undefined) continue;
      if (!live || channel.feed.repairing) {
        floors.set(channel.namespace, undefined);
        continue;
      }
      channel.flush();
      if (!floors.has(channel.namespace)) floors.set(channel.namespace, this.#bus.floor(channel.namespace));
    }
    // What was just published may still wait for the end of the turn, and be refused then. A ping makes it leave before the floors do.
    session.outlet.ping();
    if (!session.isOpen) return undefined;
    const known = [...floors].flatMap(([ns, p]) =>
      p === undefined ? [] : [[ns, formatPosition(p)] as const],
    );
    return known.length === 0 ? undefined : Object.fromEntries(known);
  }

  /** Tells a session that the stream of a namespace was replaced. */
  restart(session: Session, namespace: string, head: Position): void {
    const topics = session.attachments.flatMap((a) =>
      a.channel.namespace === namespace ? a.restart(head) : [],
    );
    if (topics.length > 0) session.send({ type: 'subscribed', topics });
  }

  #refusal(session: Session, filter: string, held: ReadonlySet<string>): ErrorCode | undefined {
    if (!parseFilter(filter).ok) return 'invalid_topic';
    if (!session.maySubscribe(filter)) return 'forbidden';
    if (held.has(filter)) return undefined;
    if (held.size >= this.#limits.topicsMax) return 'too_many_topics';
    if (isPattern(filter) && countPatterns(held) >= this.#limits.patternsMax) return 'too_many_topics';
    return undefined;
  }

  #rearrange(session: Session, added: ReadonlyMap<string, Member>, removed: ReadonlySet<string>): void {
    for (const namespace of new Set([...added.keys(), ...removed].map(namespaceOf))) {
      const current = session.attachments.filter((a) => a.channel.namespace === namespace);
      const members = new Map<string, Member>();
      for (const member of current.flatMap((a) => a.members)) {
        if (!removed.has(member.filter)) members.set(member.filter, member);
        // An answer that still waits to leave would come after the newer one.
        if (removed.has(member.filter) || added.has(member.filter)) {
          member.pending?.answer.withdraw(member.filter);
        }
      }
      for (const [filter, member] of added) {
        if (namespaceOf(filter) === namespace) members.set(filter, member);
      }
      this.#apply(session, current, members);
    }
  }

  /** Moves a session from its channels of one namespace to those that its members now need. */
  #apply(session: Session, current: readonly Attachment[], members: ReadonlyMap<string, Member>): void {
    const groups = partition([...members.keys()]);
    const kept = new Map<string, Attachment>();
    for (const group of groups) {
      const same = current.find((a) => a.channel.key === group.key && serves(a, group, members));
      if (same !== undefined) kept.set(group.key, same);
    }
    const ended = current.filter((a) => kept.get(a.channel.key) !== a);
    // After this every member's cursor says what the session has; a drop meanwhile has let go of everything.
    for (const attachment of ended) attachment.end();
    if (session.isLost) return session.resyncLater(members.keys());
    if (session.isClosed) return;
    const started = groups
      .filter((group) => !kept.has(group.key))
      .map(
        (group) =>
          new Attachment(
            this.#channels.acquire(group.key, group.filters),
            // A list that was put together by `flatMap` keeps room for more; a copy does not.
            group.members.flatMap((filter) => members.get(filter) ?? []).slice(),
            session,
          ),
      );
    const gone = new Set(ended);
    session.attachments = session.attachments.filter((a) => !gone.has(a)).concat(started);
    for (const attachment of ended) this.#channels.release(attachment.channel);
    for (const attachment of started) {
      attachment.start().catch((error: unknown) => session.fail(error));
    }
  }
}

/** Whether an attachment already serves exactly these members. */
function serves(attachment: Attachment, group: Group, members: ReadonlyMap<string, Member>): boolean {
  return (
    attachment.members.length === group.members.length &&
    attachment.members.every((member) => members.get(member.filter) === member)
  );
}

export function filtersOf(session: Session): string[] {
  return session.attachments.flatMap((a) => a.members.map((m) => m.filter));
}

function countPatterns(filters: ReadonlySet<string>): number {
  let count = 0;
  for (const filter of filters) if (isPattern(filter)) count++;
  return count;
}
