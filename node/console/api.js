/** Where the console came from, without a slash at its end: a proxy may have put the node under a path. */
export const base = new URL('.', document.baseURI).href.replace(/\/$/, '');

/** An answer that is not the one hoped for. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * Calls the HTTP API.
 * @param {string} path from `/v1/` on
 * @param {{ token: string, method?: string, body?: string }} options `body` is JSON already
 * @returns the parsed answer
 * @throws ApiError; status 0 when nobody answers
 */
export async function call(path, { body, method = body === undefined ? 'GET' : 'POST', token }) {
  const headers = {};
  if (token !== '') headers['Authorization'] = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(base + path, { method, headers, body, cache: 'no-store' });
  } catch (cause) {
    throw Object.assign(new ApiError(0, 'unreachable', 'The node does not answer.'), { cause });
  }
  const answer = await response.json();
  if (response.ok) return answer;
  throw new ApiError(
    response.status,
    answer.error?.code,
    answer.error?.message ?? `status ${response.status}`,
  );
}
