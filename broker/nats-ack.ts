import type { Msg } from 'nats';
import { BrokerError, unavailable } from './errors.js';

/** Where a stored message went. */
export interface PublishAck {
  readonly seq: number;
  readonly duplicate: boolean;
}

/** What became of a message. */
export type AckOutcome = PublishAck | BrokerError;

/** The same id is being stored at this moment; whether it will be is known soon. */
export class StillStoring extends BrokerError {
  constructor() {
    super('unavailable', 'a message with the same id is being stored');
    this.name = 'StillStoring';
  }
}

/** The server's number for "duplicate message id is in process". */
const duplicateInProcess = 10158;

/** Reads what a stream answers to a message. The error is `unavailable` (refused, not stored). */
export function readAck(message: Pick<Msg, 'data' | 'headers' | 'string'>): AckOutcome {
  const { data } = message;
  const seq = plainSequence(data);
  if (seq > 0) return { seq, duplicate: false };
  // Nobody listens on the subject: no stream, or none that has a leader.
  if (data.length === 0 && message.headers?.code === 503) return unavailable('the stream is out of reach');
  return parseAck(message.string());
}

function parseAck(text: string): AckOutcome {
  let ack: { seq?: number; duplicate?: boolean; error?: { err_code?: number; description?: string } };
  try {
    ack = JSON.parse(text) as typeof ack;
  } catch (error) {
    return unavailable('the stream answered with something else than JSON', error);
  }
  if (ack.error?.err_code === duplicateInProcess) return new StillStoring();
  if (ack.error !== undefined) {
    return unavailable(`the stream refused: ${ack.error.description ?? 'unknown'}`);
  }
  if (ack.seq === undefined) return unavailable('the stream answered without a sequence');
  return { seq: ack.seq, duplicate: ack.duplicate === true };
}

const start = Buffer.from('{"stream":"');
const middle = Buffer.from('"seq":');
const [quote, comma, space, backslash, closeBrace, zero] = Buffer.from('", \\}0') as unknown as readonly [
  number,
  number,
  number,
  number,
  number,
  number,
];

/** The sequence in `{"stream":"…", "seq":12}`, which nearly all answers are, without building it; 0 when it is anything else. */
function plainSequence(data: Uint8Array): number {
  if (!holds(data, 0, start)) return 0;
  let at = start.length;
  for (; data[at] !== quote; at++) if (at >= data.length || data[at] === backslash) return 0;
  if (data[++at] !== comma) return 0;
  if (data[++at] === space) at++;
  if (!holds(data, at, middle)) return 0;
  let seq = 0;
  for (at += middle.length; ; at++) {
    const digit = (data[at] ?? 0) - zero;
    if (digit < 0 || digit > 9) break;
    seq = seq * 10 + digit;
  }
  return data[at] === closeBrace && at === data.length - 1 ? seq : 0;
}

function holds(data: Uint8Array, at: number, bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if (data[at + i] !== bytes[i]) return false;
  return true;
}
