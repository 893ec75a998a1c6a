import { isDeeperThan, parseJson } from './json-scan.js';
import { grammarLimits } from './limits.js';
import type { JsonPayload } from './payload.js';
import { failure, success, type Result } from './result.js';

/**
 * A payload of any text, kept as it is but for white space around it. Refused with `invalid_frame` when it is
 * not one JSON text or nests deeper than `payloadDepthMax`.
 */
export function jsonPayload(text: string): Result<JsonPayload> {
  const parsed = parseJson(text);
  return parsed.ok ? validJsonPayload(text) : parsed;
}

/** The same for text that `JSON.parse` accepts: only the depth is checked. */
export function validJsonPayload(text: string): Result<JsonPayload> {
  const trimmed = text.trim();
  if (isDeeperThan(trimmed)) {
    return failure('invalid_frame', `nests deeper than ${grammarLimits.payloadDepthMax}`);
  }
  return success({ format: 'json', text: trimmed });
}
