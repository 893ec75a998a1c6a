/**
 * What each socket has got of each of its topics, in a few typed arrays: an object for each pair would be larger than the socket. Messages of a
 * topic are numbered by their publisher without a hole, so numbers tell lost, late and repeated ones apart; offsets are kept to resume with.
 */
export class Deliveries {
  lost = 0;
  doubled = 0;
  disorder = 0;
  readonly #slots: number;
  readonly #numbers: Float64Array;
  /** Bit i: the number i before the newest was seen. */
  readonly #seen: Uint32Array;
  readonly #offsets: Float64Array;

  /**
   * @param slots topics a socket at most
   * @param firstNumber that every socket must begin with; -1: any
   */
  constructor(sockets: number, slots: number, firstNumber: number) {
    this.#slots = slots;
    // NaN: whatever comes first.
    this.#numbers = new Float64Array(sockets * slots).fill(firstNumber < 0 ? NaN : firstNumber - 1);
    // What came before the first one counts as seen.
    this.#seen = new Uint32Array(sockets * slots).fill(0xffff_ffff);
    this.#offsets = new Float64Array(sockets * slots).fill(-1);
  }

  /** A message with its number, and its offset or -1. */
  take(socket: number, slot: number, number: number, offset: number): void {
    const at = socket * this.#slots + slot;
    if (offset > this.#offsets[at]!) this.#offsets[at] = offset;
    const newest = this.#numbers[at]!;
    const step = number - newest;
    if (step === 1) {
      this.#numbers[at] = number;
      this.#seen[at] = (this.#seen[at]! << 1) | 1;
    } else if (Number.isNaN(newest)) {
      this.#numbers[at] = number;
    } else if (step > 1) {
      this.lost += step - 1;
      this.#numbers[at] = number;
      this.#seen[at] = step > 31 ? 1 : (this.#seen[at]! << step) | 1;
    } else {
      this.#takeEarlier(at, -step);
    }
  }

  #takeEarlier(at: number, back: number): void {
    const bit = back > 31 ? 0 : 2 ** back;
    if (bit === 0 || (this.#seen[at]! & bit) !== 0) {
      this.doubled++;
      return;
    }
    this.#seen[at] = this.#seen[at]! | bit;
    this.lost--;
    this.disorder++;
  }

  /** A message for a pattern: its topics are numbered apart, so only the offset can be looked at. */
  takeOffset(socket: number, slot: number, offset: number): void {
    if (offset < 0) return;
    const at = socket * this.#slots + slot;
    if (offset <= this.#offsets[at]!) this.doubled++;
    else this.#offsets[at] = offset;
  }

  /** Where the subscription stands: what follows is after it. */
  setOffset(socket: number, slot: number, offset: number): void {
    const at = socket * this.#slots + slot;
    if (offset > this.#offsets[at]!) this.#offsets[at] = offset;
  }

  /** The last offset seen, to resume after; -1: none. */
  offset(socket: number, slot: number): number {
    return this.#offsets[socket * this.#slots + slot]!;
  }

  /** What was missed is not lost: the next message may have any number. For topics without positions, or whose positions are void. */
  forget(socket: number, slot: number): void {
    const at = socket * this.#slots + slot;
    this.#offsets[at] = -1;
    this.#numbers[at] = NaN;
    this.#seen[at] = 0xffff_ffff;
  }
}
