/** A clock that stands until it is advanced. */
export interface TestClock {
  readonly now: () => number;
  advance(ms: number): void;
}

export function createTestClock(startMs = 1_700_000_000_000): TestClock {
  let time = startMs;
  return {
    now: () => time,
    advance: (ms) => {
      time += ms;
    },
  };
}
