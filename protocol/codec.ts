import type { ClientFrame, ServerFrame } from './frames.js';
import type { PayloadFormat } from './payload.js';
import type { Result } from './result.js';

/** An encoded frame: text for JSON (a WebSocket text message), bytes for MessagePack (a binary one). */
export type Encoded = string | Uint8Array;

/**
 * Frames to and from the wire. Encoders expect payloads in the codec's own format (`transcode` first) and
 * throw on a payload of the other, which is a fault of the caller. Decoders are total: any bytes give a frame
 * or a coded failure (`invalid_frame`, `unknown_type`, `invalid_topic`), never an exception.
 */
export interface Codec {
  readonly name: PayloadFormat;
  /** The WebSocket subprotocol that selects it. */
  readonly subprotocol: string;
  readonly binary: boolean;
  encodeClient(frame: ClientFrame): Encoded;
  encodeServer(frame: ServerFrame): Encoded;
  /** `bytes` may be reused by the caller afterwards: whatever the frame keeps is copied. */
  decodeClient(bytes: Uint8Array): Result<ClientFrame>;
  decodeServer(bytes: Uint8Array): Result<ServerFrame>;
}
