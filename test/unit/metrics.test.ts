import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../node/metrics.js';

async function samples(metrics: ReturnType<typeof createMetrics>): Promise<Map<string, number>> {
  const lines = (await metrics.render()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

describe('metrics', () => {
  it('show the counters as they are at the scrape, again and again', async () => {
    const metrics = createMetrics();
    metrics.counters.connectionsOpened += 3;
    metrics.counters.published.durable += 2;
    metrics.counters.framesIn.subscribe++;
    metrics.counters.frameErrors.rate_limited += 4;
    metrics.countRefused(401);
    metrics.countRefused(401);
    const first = await samples(metrics);
    expect(first.get('topicast_connections_opened_total')).toBe(3);
    expect(first.get('topicast_messages_published_total{delivery="durable"}')).toBe(2);
    expect(first.get('topicast_messages_published_total{delivery="live"}')).toBe(0);
    expect(first.get('topicast_frames_in_total{type="subscribe"}')).toBe(1);
    expect(first.get('topicast_frame_errors_total{code="rate_limited"}')).toBe(4);
    expect(first.get('topicast_handshakes_refused_total{status="401"}')).toBe(2);
    metrics.counters.connectionsOpened++;
    expect((await samples(metrics)).get('topicast_connections_opened_total')).toBe(4);
  });

  it('keep the codes that clients make up under one label', async () => {
    const metrics = createMetrics();
    for (let code = 4900; code < 4999; code++) metrics.countClose(code);
    metrics.countClose(1000);
    metrics.countClose(4001);
    const closes = [...(await samples(metrics))].filter(([name]) =>
      name.startsWith('topicast_connections_closed_total'),
    );
    expect(new Map(closes)).toEqual(
      new Map([
        ['topicast_connections_closed_total{code="other"}', 99],
        ['topicast_connections_closed_total{code="1000"}', 1],
        ['topicast_connections_closed_total{code="4001"}', 1],
      ]),
    );
  });

  it('read gauges at the scrape', async () => {
    const metrics = createMetrics();
    let connections = 5;
    metrics.gauge('connections', 'Open connections.', () => connections);
    expect((await samples(metrics)).get('topicast_connections')).toBe(5);
    connections = 2;
    expect((await samples(metrics)).get('topicast_connections')).toBe(2);
  });

  it('read counters of other parts at the scrape', async () => {
    const metrics = createMetrics();
    let ignored = 5;
    metrics.counter('ignored_total', 'Not understood.', () => ignored);
    expect((await samples(metrics)).get('topicast_ignored_total')).toBe(5);
    ignored = 7;
    expect((await samples(metrics)).get('topicast_ignored_total')).toBe(7);
    expect(await metrics.render()).toContain('# TYPE topicast_ignored_total counter');
  });

  it('belong to one node each, with the process and event loop among them', async () => {
    const [one, other] = [createMetrics(), createMetrics()];
    one.counters.resyncs++;
    expect((await samples(other)).get('topicast_resyncs_total')).toBe(0);
    const names = [...(await samples(one)).keys()].join('\n');
    expect(names).toContain('nodejs_eventloop_lag_p99_seconds');
    expect(names).toContain('process_resident_memory_bytes');
  });

  it('name every counter', async () => {
    const metrics = createMetrics();
    const { counters } = metrics;
    for (const [key, value] of Object.entries(counters)) {
      if (typeof value === 'number') Object.assign(counters, { [key]: 77 });
    }
    const plain = Object.values(counters).filter((value) => value === 77).length;
    const shown = [...(await samples(metrics)).entries()].filter(
      ([n, v]) => n.startsWith('topicast_') && v === 77,
    );
    expect(plain).toBeGreaterThan(8);
    expect(shown).toHaveLength(plain);
  });
});
