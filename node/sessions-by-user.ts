/** Sessions by their user. Nearly every user has one, and a set for each of them would take more room than half a session. */
export class SessionsByUser<S extends { readonly userId: string }> {
  readonly #users = new Map<string, S | Set<S>>();

  /** @returns how many the user has now */
  add(session: S): number {
    const { userId } = session;
    const known = this.#users.get(userId);
    if (known === undefined) {
      this.#users.set(userId, session);
      return 1;
    }
    const all = known instanceof Set ? known : new Set([known]);
    this.#users.set(userId, all.add(session));
    return all.size;
  }

  delete(session: S): void {
    const { userId } = session;
    const known = this.#users.get(userId);
    if (known instanceof Set) {
      known.delete(session);
      if (known.size === 0) this.#users.delete(userId);
    } else if (known === session) {
      this.#users.delete(userId);
    }
  }

  of(userId: string): readonly S[] {
    const known = this.#users.get(userId);
    if (known === undefined) return [];
    return known instanceof Set ? [...known] : [known];
  }
}
