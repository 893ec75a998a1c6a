/**
 * The same text in memory of its own, for what is kept. V8 cuts text out of a longer one as a view of it: a session that held the view of a topic
 * would hold the whole query of its handshake.
 */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}
