import { describe, expect, it } from 'vitest';
import { DgramDatagrams } from '../../media/datagrams/datagrams.dgram.ts';
import { FRAME_SAMPLES, tone, toneFrames } from '../../media/dsp/tones.ts';
import { FastPath } from '../../media/relay/fast-path.ts';
import { FramePacer } from '../../media/relay/frame-pacer.ts';
import { SendRing } from '../../media/relay/send-ring.ts';
import { RelaySession } from '../../media/relay/session.ts';
import { telephoneEventPayload } from '../../media/rtp/telephone-event.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { expectContinuous } from './relay-bench.ts';
import { freePortRange, RtpPhone } from './rtp-phone.ts';

/** A session of any parties, each a phone on real sockets with its own tone. */
class Conference {
  readonly phones = new Map<string, RtpPhone>();
  readonly #tones = new Map<string, Uint8Array[]>();
  readonly #ports = new Map<string, number>();
  readonly #freePorts: number[];
  nowMs = 1000;
  session!: RelaySession;
  #tick: (() => void) | null = null;
  #frame = 0;

  private constructor(freePorts: number[]) {
    this.#freePorts = freePorts;
  }

  static async open(frequenciesHz: Record<string, number>): Promise<Conference> {
    const { min } = await freePortRange(6);
    const conference = new Conference([0, 2, 4, 6, 8, 10].map((offset) => min + offset));
    const nowMs = (): number => conference.nowMs;
    const clock = { nowMs, unixMs: () => 1_700_000_000_000 + conference.nowMs };
    const datagrams = new DgramDatagrams();
    conference.session = await RelaySession.open({
      bindHost: '127.0.0.1',
      rtpPorts: {},
      rtpTimeoutMs: 20_000,
      datagrams,
      pacer: new FramePacer({
        nowMs,
        after: (_delayMs, callback) => {
          conference.#tick = callback;
          return () => {
            conference.#tick = null;
          };
        },
      }),
      sendRing: new SendRing(),
      fastPath: new FastPath(datagrams, clock),
      clock,
      post: () => {},
    });
    for (const [id, frequencyHz] of Object.entries(frequenciesHz)) await conference.add(id, frequencyHz);
    return conference;
  }

  async add(id: string, frequencyHz: number, levelDbfs = -10): Promise<void> {
    const phone = await RtpPhone.open();
    phone.ssrc = 0x1000 + this.phones.size;
    this.phones.set(id, phone);
    this.#tones.set(id, toneFrames('PCMU', { frequenciesHz: [frequencyHz], durationMs: 1000, levelDbfs }));
    const port = this.#freePorts.shift()!;
    this.#ports.set(id, port);
    await this.session.addParty(id, port);
    await this.session.connectParty(id, phone.remote());
  }

  phone(id: string): RtpPhone {
    return this.phones.get(id)!;
  }

  /** The parties speak frames of 20 ms in step with the mixer. */
  async talk(frames: number, speakers: readonly string[] = [...this.phones.keys()]): Promise<void> {
    for (let i = 0; i < frames; i++) {
      for (const id of speakers) {
        this.phone(id).say(this.#ports.get(id)!, 'PCMU', this.#tones.get(id)![this.#frame % 50]!);
        await this.#taken(id);
      }
      this.#frame += 1;
      this.nowMs += 20;
      this.#tick?.();
    }
  }

  /** Sends one packet of a key that a party has held for some time. */
  async holdKey(id: string, event: number, { ms, isEnd }: { ms: number; isEnd: boolean }): Promise<void> {
    const payload = telephoneEventPayload({ event, isEnd, volume: 10, durationUnits: 8 * ms });
    this.phone(id).sendRtp(this.#ports.get(id)!, { payloadType: 101 }, payload);
    await this.#taken(id);
  }

  async press(id: string, event: number): Promise<void> {
    this.phone(id).press(this.#ports.get(id)!, event);
    await this.#taken(id);
  }

  /** Waits for a malformed packet to be rejected, sent after the others. */
  async #taken(id: string): Promise<void> {
    const malformed = (): number => this.partyDump(id).counters.malformed!;
    const before = malformed();
    this.phone(id).sendRaw(this.#ports.get(id)!, Buffer.from('not rtp'));
    while (malformed() === before) await new Promise((resolve) => setImmediate(resolve));
  }

  partyDump(id: string): { counters: Record<string, number>; feed: string; playout: unknown } {
    return (this.session.dump() as { parties: Record<string, ReturnType<Conference['partyDump']>> }).parties[id]!;
  }

  levelAt(id: string, frequencyHz: number): number {
    const samples = this.phone(id).receivedSamples('PCMU');
    return toneLevelDbov(samples.subarray(-20 * FRAME_SAMPLES), frequencyHz);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.session.close();
    await Promise.all([...this.phones.values()].map((phone) => phone[Symbol.asyncDispose]()));
  }
}

const HZ = { agent: 400, customer: 700, supervisor: 1100 };
const ALL_HEAR_ALL = {
  receives: {
    agent: [{ party: 'customer' }, { party: 'supervisor' }],
    customer: [{ party: 'agent' }, { party: 'supervisor' }],
    supervisor: [{ party: 'agent' }, { party: 'customer' }],
  },
  watched: [],
};
const LOUD = -20;
const SILENT = -45;

describe('session of three parties', () => {
  it('mixes the two others for each party', async () => {
    await using conference = await Conference.open(HZ);
    conference.session.setRouting(ALL_HEAR_ALL);
    await conference.talk(50);
    for (const listener of ['agent', 'customer', 'supervisor'] as const) {
      await conference.phone(listener).untilReceived(50);
      for (const [speaker, frequencyHz] of Object.entries(HZ)) {
        const level = conference.levelAt(listener, frequencyHz);
        if (speaker === listener) expect(level, `${speaker} at ${listener}`).toBeLessThan(SILENT);
        else expect(level, `${speaker} at ${listener}`).toBeGreaterThan(LOUD);
      }
      expectContinuous(conference.phone(listener).received.map(({ header }) => header));
    }
  });

  it('forwards the agent to the customer unmixed while the supervisor hears a mix of both', async () => {
    await using conference = await Conference.open(HZ);
    conference.session.setRouting({
      receives: {
        agent: [{ party: 'customer' }],
        customer: [{ party: 'agent' }],
        supervisor: [{ party: 'agent' }, { party: 'customer' }],
      },
      watched: [],
    });
    await conference.talk(50);
    await Promise.all([...conference.phones.values()].map((phone) => phone.untilReceived(50)));
    const said = toneFrames('PCMU', { frequenciesHz: [HZ.agent], durationMs: 1000 }).map((frame) => Buffer.from(frame));
    expect(conference.phone('customer').received.map(({ payload }) => payload)).toEqual(said);
    expect(conference.levelAt('supervisor', HZ.agent)).toBeGreaterThan(LOUD);
    expect(conference.levelAt('supervisor', HZ.customer)).toBeGreaterThan(LOUD);
    for (const party of ['agent', 'customer'] as const) {
      expect(conference.levelAt(party, HZ.supervisor)).toBeLessThan(SILENT);
    }
  });

  it('sends one packet of a party to several listeners intact', async () => {
    await using conference = await Conference.open(HZ);
    conference.session.setRouting({
      receives: { agent: [{ party: 'customer' }], supervisor: [{ party: 'customer' }] },
      watched: [],
    });
    await conference.talk(20, ['customer']);
    const said = toneFrames('PCMU', { frequenciesHz: [HZ.customer], durationMs: 400 }).map((frame) =>
      Buffer.from(frame),
    );
    for (const listener of ['agent', 'supervisor'] as const) {
      await conference.phone(listener).untilReceived(20);
      expect(conference.phone(listener).received.map(({ payload }) => payload)).toEqual(said);
    }
    const ssrcs = [...conference.phones.values()].flatMap(({ received }) => received.map(({ header }) => header.ssrc));
    expect(new Set(ssrcs).size).toBe(2);
  });

  it('passes the key presses of each party on to all who hear it', async () => {
    await using conference = await Conference.open(HZ);
    conference.session.setRouting(ALL_HEAR_ALL);
    await conference.talk(5);
    await conference.press('agent', 5);
    await conference.talk(10);
    for (const listener of ['customer', 'supervisor'] as const) {
      const { received } = conference.phone(listener);
      const events = received.filter(({ header }) => header.payloadType === 101);
      expect(events.map(({ payload }) => payload[0])).toEqual(Array(5).fill(5));
      expect(new Set(events.map(({ header }) => header.timestamp)).size).toBe(1);
    }
    expect(conference.phone('agent').received.every(({ header }) => header.payloadType === 0)).toBe(true);
  });

  it('hears the others while a party presses a key, and one key at a time', async () => {
    await using conference = await Conference.open(HZ);
    conference.session.setRouting({
      receives: { supervisor: [{ party: 'agent' }, { party: 'customer' }] },
      watched: [],
    });
    await conference.talk(5);
    const { received } = conference.phone('supervisor');
    for (let ms = 20; ms <= 200; ms += 20) {
      await conference.holdKey('agent', 1, { ms, isEnd: ms === 200 });
      await conference.holdKey('customer', 2, { ms, isEnd: ms === 200 });
      await conference.talk(1, []);
    }
    await conference.phone('supervisor').untilReceived(5 + 20);
    const events = received.filter(({ header }) => header.payloadType === 101);
    expect(events.map(({ payload }) => payload[0])).toEqual(Array(10).fill(1));
    expect(new Set(events.map(({ header }) => header.timestamp)).size).toBe(1);
    const audio = received.map(({ header }) => header).filter(({ payloadType }) => payloadType === 0);
    expect(audio.map(({ timestamp }) => (timestamp - audio[0]!.timestamp) >>> 0)).toEqual(audio.map((_, i) => 160 * i));
    expect(audio.filter(({ marker }) => marker)).toHaveLength(1);
  });

  it('applies the gain of a party, even to a single one', async () => {
    await using conference = await Conference.open(HZ);
    conference.session.setRouting({ receives: { agent: [{ party: 'customer', gain: 0.1 }] }, watched: [] });
    await conference.talk(50, ['customer']);
    await conference.phone('agent').untilReceived(50);
    const level = conference.levelAt('agent', HZ.customer);
    const full = toneLevelDbov(tone({ frequenciesHz: [HZ.customer], durationMs: 400 }), HZ.customer);
    expect(level).toBeGreaterThan(full - 21);
    expect(level).toBeLessThan(full - 19);
  });

  it('sends one continuous stream from bridge to mix and back', async () => {
    await using conference = await Conference.open(HZ);
    const { session } = conference;
    const bridged = { agent: [{ party: 'customer' }], customer: [{ party: 'agent' }] };
    session.setRouting({ receives: bridged, watched: [] });
    await conference.talk(10);
    session.setRouting({
      receives: { ...bridged, agent: [{ party: 'customer' }, { party: 'supervisor' }] },
      watched: [],
    });
    await conference.talk(30);
    session.setRouting({ receives: bridged, watched: [] });
    await conference.talk(10);
    await conference.phone('agent').untilReceived(50);
    const headers = conference.phone('agent').received.map(({ header }) => header);
    expectContinuous(headers);
    // The mixer sends its first frame at once.
    expect(headers.flatMap(({ marker }, index) => (marker ? [index] : []))).toEqual([0, 10, 41]);
  });

  it('stops mixing when the third party leaves', async () => {
    await using conference = await Conference.open(HZ);
    conference.session.setRouting({
      receives: { agent: [{ party: 'customer' }, { party: 'supervisor' }] },
      watched: [],
    });
    await conference.talk(20);
    await conference.session.removeParty('supervisor');
    await conference.talk(30, ['agent', 'customer']);
    await conference.phone('agent').untilReceived(50);
    expect(conference.levelAt('agent', HZ.customer)).toBeGreaterThan(LOUD);
    expect(conference.levelAt('agent', HZ.supervisor)).toBeLessThan(SILENT);
    expect(conference.session.dump()).not.toHaveProperty('parties.supervisor');
    conference.session.setRouting({ receives: {}, watched: [] });
    expect(conference.partyDump('customer')).toMatchObject({ feed: 'nothing', playout: null });
    expect(() => conference.session.setRouting({ receives: {}, watched: ['supervisor'] })).toThrow(RangeError);
  });
});

describe('session of five parties', () => {
  it('mixes the loudest three', async () => {
    const loud = { first: 400, second: 700, third: 1000 };
    await using conference = await Conference.open({ listener: 300, ...loud });
    await conference.add('quiet', 1500, -30);
    const received = [...Object.keys(loud), 'quiet'].map((party) => ({ party }));
    conference.session.setRouting({ receives: { listener: received }, watched: [] });
    await conference.talk(50);
    await conference.phone('listener').untilReceived(50);
    for (const frequencyHz of Object.values(loud))
      expect(conference.levelAt('listener', frequencyHz)).toBeGreaterThan(LOUD);
    expect(conference.levelAt('listener', 1500)).toBeLessThan(SILENT);
    await conference.talk(50, ['first', 'second', 'quiet']);
    await conference.phone('listener').untilReceived(100);
    expect(conference.levelAt('listener', 1500)).toBeGreaterThan(-40);
  });

  it('clips at 16 bits without wrap-around', async () => {
    await using conference = await Conference.open({ listener: 300 });
    for (const id of ['first', 'second', 'third']) await conference.add(id, 500, -1);
    const received = ['first', 'second', 'third'].map((party) => ({ party }));
    conference.session.setRouting({ receives: { listener: received }, watched: [] });
    await conference.talk(20, ['first', 'second', 'third']);
    await conference.phone('listener').untilReceived(20);
    const samples = conference
      .phone('listener')
      .receivedSamples('PCMU')
      .subarray(-5 * FRAME_SAMPLES);
    expect(Math.max(...samples)).toBeGreaterThan(31_000);
    for (let i = 1; i < samples.length; i++) expect(Math.abs(samples[i]! - samples[i - 1]!)).toBeLessThan(40_000);
  });
});

describe('session that closes while a party is added', () => {
  it('leaves no socket behind', async () => {
    await using first = await Conference.open({});
    await using second = await Conference.open({});
    const { min } = await freePortRange(1);
    const adding = expect(first.session.addParty('late', min)).rejects.toThrow(RangeError);
    await first.session.close();
    await adding;
    await second.session.addParty('late', min);
  });
});
