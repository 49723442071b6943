import { expect } from 'vitest';
import { routingOf } from '../../actors/call-routing.ts';
import type { LegName, MediaEvent, RemoteMedia } from '../../machines/events.ts';
import type { Datagrams } from '../../media/datagrams/datagrams.ts';
import { openDatagrams } from '../../media/datagrams/open-datagrams.ts';
import { isMeasurement, type MediaMeasurement } from '../../media/media-plane.ts';
import { FastPath } from '../../media/relay/fast-path.ts';
import { FramePacer } from '../../media/relay/frame-pacer.ts';
import { SendRing } from '../../media/relay/send-ring.ts';
import { RelaySession } from '../../media/relay/session.ts';
import type { RtpHeader } from '../../media/rtp/packet.ts';
import { freePortRange, RtpPhone } from './rtp-phone.ts';

/** A session in this thread between two phones on real sockets, with a fake clock. */
export class Bench {
  readonly events: MediaEvent<string>[] = [];
  readonly measurements: MediaMeasurement[] = [];
  readonly agent: RtpPhone;
  readonly customer: RtpPhone;
  readonly ports: Record<LegName, number>;
  nowMs = 1000;
  session!: RelaySession;
  #tickPacer: (() => void) | null = null;

  readonly #datagrams: Datagrams;

  private constructor(agent: RtpPhone, customer: RtpPhone, ports: Record<LegName, number>, datagrams: Datagrams) {
    this.#datagrams = datagrams;
    this.agent = agent;
    this.customer = customer;
    this.ports = ports;
  }

  static async open(): Promise<Bench> {
    const [agent, customer] = await Promise.all([RtpPhone.open(), RtpPhone.open()]);
    customer.ssrc = 0x2000;
    const { min } = await freePortRange(2);
    const bench = new Bench(
      agent,
      customer,
      { agent: min, customer: min + 2 },
      (await openDatagrams('auto')).datagrams,
    );
    const clock = { nowMs: () => bench.nowMs, unixMs: () => 1_700_000_000_000 + bench.nowMs };
    const pacer = new FramePacer({
      nowMs: clock.nowMs,
      after: (_delayMs, callback) => {
        bench.#tickPacer = callback;
        return () => {
          bench.#tickPacer = null;
        };
      },
    });
    bench.session = await RelaySession.open({
      bindHost: '127.0.0.1',
      rtpPorts: bench.ports,
      rtpTimeoutMs: 20_000,
      datagrams: bench.#datagrams,
      pacer,
      sendRing: new SendRing(),
      fastPath: new FastPath(bench.#datagrams, clock),
      clock,
      post: (event) => (isMeasurement(event) ? bench.measurements.push(event) : bench.events.push(event)),
    });
    return bench;
  }

  async connect(remotes: { agent?: RemoteMedia; customer?: RemoteMedia } = {}): Promise<void> {
    await this.session.connectParty('agent', remotes.agent ?? this.agent.remote());
    await this.session.connectParty('customer', remotes.customer ?? this.customer.remote());
  }

  pace(frames: number): void {
    for (let i = 0; i < frames; i++) {
      this.#tickPacer?.();
      this.nowMs += 20;
    }
  }

  partyDump(leg: LegName): Record<string, unknown> {
    return (this.session.dump() as { parties: Record<LegName, Record<string, unknown>> }).parties[leg];
  }

  /** Applies the routing of a call phase, which ends playback to the agent. */
  setPath(path: Parameters<typeof routingOf>[0]): void {
    this.session.stopPlaying('agent');
    this.session.setRouting(routingOf(path));
  }

  counters(leg: LegName): Record<string, number> {
    return this.partyDump(leg).counters as Record<string, number>;
  }

  /** Waits until the session has processed earlier packets, by sending a malformed one. */
  async settled(leg: LegName): Promise<void> {
    const before = this.#malformed(leg);
    this[leg].sendRaw(this.ports[leg], Buffer.from('not rtp'));
    while (this.#malformed(leg) === before) await new Promise((resolve) => setImmediate(resolve));
  }

  #malformed(leg: LegName): number {
    const srtp = this.partyDump(leg).srtp as { drops: { malformed: number } } | null;
    return this.counters(leg).malformed! + (srtp?.drops.malformed ?? 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.session.close();
    this.#datagrams.close();
    await Promise.all([this.agent[Symbol.asyncDispose](), this.customer[Symbol.asyncDispose]()]);
  }
}

export function expectContinuous(headers: RtpHeader[]): void {
  expect(new Set(headers.map((header) => header.ssrc)).size).toBe(1);
  for (let i = 1; i < headers.length; i++) {
    expect((headers[i]!.sequence - headers[i - 1]!.sequence) & 0xffff).toBe(1);
    const advance = (headers[i]!.timestamp - headers[i - 1]!.timestamp) | 0;
    expect(advance).toBeGreaterThanOrEqual(160);
    expect(advance).toBeLessThan(8 * 2000);
  }
}
