import { expect, it } from 'vitest';
import { casesOf } from '../support/effort.js';
import { runSchedules, schedulesSeed } from '../support/model/run.js';

const schedules = casesOf(3000);

it('keeps its promises to every client, whatever the network, the store and the sockets do', async () => {
  const found = await runSchedules(schedulesSeed(), schedules);
  expect(found.failures, found.summary).toEqual([]);
  if (found.schedules < schedules) return;
  // A run in which nothing happens proves nothing.
  expect(found.messages).toBeGreaterThan(schedules * 20);
  expect(found.received).toBeGreaterThan(schedules * 40);
  expect(found.resyncs).toBeGreaterThan(schedules / 20);
  expect(found.repaired).toBeGreaterThan(schedules / 2);
});
