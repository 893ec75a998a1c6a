interface Randomness {
  readonly crypto?: { getRandomValues?(into: Uint32Array): Uint32Array };
}

/** Tells the messages of this run from those of any other of the same user. */
let run: string | undefined;
let count = 0;

/** An id that no other publish of this user has: without it, a publish that is sent again after a cut could be stored twice. */
export function messageId(): string {
  run ??= randomText();
  return `${run}-${(++count).toString(36)}`;
}

function randomText(): string {
  const words = new Uint32Array(4);
  const { crypto } = globalThis as Randomness;
  // Mini-programs have no `crypto`. This need not be secret, only rare.
  if (crypto?.getRandomValues === undefined) words.forEach((_, i) => (words[i] = Math.random() * 2 ** 32));
  else crypto.getRandomValues(words);
  return Array.from(words, (word) => word.toString(36)).join('');
}
