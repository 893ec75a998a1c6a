/**
 * What a publisher sent, untouched. JSON stays text and MessagePack stays bytes, so that a JSON publisher's
 * `9007199254740993` or `1.0` reaches a JSON subscriber as it was written; only crossing from one codec to
 * the other re-encodes (`transcode.ts`).
 */
export type Payload = JsonPayload | MsgpackPayload;

export interface JsonPayload {
  readonly format: 'json';
  /** One valid JSON text. White space around it is trimmed; inside it is kept. */
  readonly text: string;
}

export interface MsgpackPayload {
  readonly format: 'msgpack';
  /** Exactly one valid MessagePack value. Not a view into a buffer that somebody else will reuse. */
  readonly bytes: Uint8Array;
}

export type PayloadFormat = Payload['format'];
