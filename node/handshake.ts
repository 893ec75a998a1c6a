import type { TopicRequest } from '../protocol/frames.js';
import type { PayloadFormat } from '../protocol/payload.js';
import { parseTopicRequest } from '../protocol/topic-request.js';
import type { Admission } from './admission.js';
import type { Authenticator, Principal } from './auth.js';
import { ownText } from './own-text.js';
import type { SameSiteRules } from './same-site.js';
import { readProtocols, tokenOf } from './token.js';

/** What a handshake says, read before anything asynchronous. '' stands for an absent header. */
export interface HandshakeRequest {
  readonly host: string;
  readonly origin: string;
  /** `Sec-WebSocket-Protocol`; '' for an event stream. */
  readonly protocols: string;
  readonly authorization: string;
  /** The raw query string. */
  readonly query: string;
}

export type HandshakeOutcome =
  | {
      readonly ok: true;
      readonly principal: Principal;
      readonly format: PayloadFormat;
      /** The subprotocol to answer with; undefined when none was offered. */
      readonly protocol: string | undefined;
      readonly topics: readonly TopicRequest[];
      readonly device: string | undefined;
    }
  | {
      readonly ok: false;
      readonly status: 400 | 401 | 403 | 503;
      readonly message: string;
      /** Jittered, so that those who were refused together do not come back together. */
      readonly retryAfterSec?: number;
    };

export interface HandshakeOptions {
  readonly authenticator: Authenticator;
  readonly admission: Admission;
  readonly sameSite: SameSiteRules;
  readonly allowQueryToken: boolean;
  /** Whether the node takes connections at all (not draining, not full). */
  readonly accepts: () => boolean;
}

const deviceCharsMax = 64;

/** Decides about a handshake: origin, admission peeked, token checked, admission taken. */
export class Handshake {
  readonly #options: HandshakeOptions;

  constructor(options: HandshakeOptions) {
    this.#options = options;
  }

  /** @param take whether to count against the admission rate; false answers what would happen */
  async decide(request: HandshakeRequest, take: boolean): Promise<HandshakeOutcome> {
    const { accepts, admission, allowQueryToken, authenticator, sameSite } = this.#options;
    if (!sameSite.allows(request.host, request.origin)) return refuse(403, 'origin not allowed');
    const offered = readProtocols(request.protocols);
    if (!offered.ok) return refuse(400, offered.message);
    if (!accepts() || !admission.peek()) return this.#later(take);
    const query = new URLSearchParams(request.query);
    const places = {
      bearer: offered.value.bearer,
      authorization: request.authorization,
      query: request.query,
    };
    const principal = await authenticator.authenticate(
      tokenOf(places, allowQueryToken),
      query.get('user') ?? undefined,
    );
    if (principal === undefined) return refuse(401, 'unauthorized');
    // Whoever has no valid token does not use up what others are owed.
    if (!accepts() || !(take ? admission.take() : admission.peek())) return this.#later(take);
    const device = query.get('device');
    return {
      ok: true,
      principal,
      format: offered.value.codec,
      protocol: offered.value.answer,
      topics: requestedTopics(query, principal),
      device: device === null ? undefined : ownText(device.slice(0, deviceCharsMax)),
    };
  }

  #later(isAnother: boolean): HandshakeOutcome {
    const retryAfterSec = this.#options.admission.retryAfterSec(isAnother);
    return { ok: false, status: 503, message: 'busy, come back later', retryAfterSec };
  }
}

/** Topics of the query, and those of the token that the query does not name (it may give a position for them). */
function requestedTopics(query: URLSearchParams, principal: Principal): TopicRequest[] {
  const requests = new Map<string, TopicRequest>();
  const named = query.getAll('topics').flatMap((list) => list.split(','));
  for (const item of named) {
    if (item === '') continue;
    const parsed = parseTopicRequest(item);
    const request = parsed.ok ? parsed.value : { topic: item };
    requests.set(request.topic, request);
  }
  for (const topic of principal.topics) if (!requests.has(topic)) requests.set(topic, { topic });
  return [...requests.values()];
}

function refuse(status: 400 | 401 | 403, message: string): HandshakeOutcome {
  return { ok: false, status, message };
}
