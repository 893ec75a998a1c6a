/** What a page tells about itself. */
export interface PageHandlers {
  /** It came to the foreground, or the network came back. */
  readonly wake: () => void;
  /** It may be gone any moment. */
  readonly hide: () => void;
}

interface Target {
  addEventListener?(name: string, listener: () => void): void;
  removeEventListener?(name: string, listener: () => void): void;
}

/** Listens where there is something to listen to: a page has events, Node and mini-programs have not. @returns ends it */
export function watchPage({ wake, hide }: PageHandlers): () => void {
  const page = globalThis as Target & { document?: Target & { visibilityState?: string } };
  const { document } = page;
  const onVisibility = (): void => (document?.visibilityState === 'hidden' ? hide() : wake());
  const listened = [
    [document, 'visibilitychange', onVisibility],
    [page, 'online', wake],
    [page, 'pageshow', wake],
    [page, 'pagehide', hide],
  ] as const;
  for (const [target, name, listener] of listened) target?.addEventListener?.(name, listener);
  return () => {
    for (const [target, name, listener] of listened) target?.removeEventListener?.(name, listener);
  };
}
