import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { MediaEvent, RemoteMedia } from '../../machines/events.ts';
import type { DatagramForwarder, DatagramReceiver, Datagrams } from '../../media/datagrams/datagrams.ts';
import { Endpoint } from '../../media/datagrams/endpoint.ts';
import { readSocketAddress, writeIPv4Address } from '../../media/datagrams/socket-address.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { SessionRecorder } from '../../media/recording/session-recorder.ts';
import { FastPath } from '../../media/relay/fast-path.ts';
import { FramePacer } from '../../media/relay/frame-pacer.ts';
import { SendRing } from '../../media/relay/send-ring.ts';
import { RelaySession } from '../../media/relay/session.ts';
import { buildRtpPacket, emptyRtpHeader, parseRtp } from '../../media/rtp/packet.ts';
import * as fc from '../properties.ts';

type Side = 'agent' | 'customer';

const SIDES: readonly Side[] = ['agent', 'customer'];
const PHONE_PORT: Record<Side, number> = { agent: 20_000, customer: 20_002 };
const RTP_PORT: Record<Side, number> = { agent: 10_000, customer: 10_002 };

/** Sockets in memory, which ask a forwarder only if `isAsking`. */
class MemorySockets implements Datagrams {
  readonly name = 'memory';
  readonly received = 0;
  readonly sent: { port: number; to: number; datagram: Buffer }[] = [];
  forwarded = 0;
  readonly #isAsking: boolean;
  readonly #receivers: { port: number; receive: DatagramReceiver }[] = [];
  readonly #bytes = Buffer.from(new ArrayBuffer(2048));
  readonly #words = new Int32Array(this.#bytes.buffer);
  #forwarder: DatagramForwarder | null = null;

  constructor(isAsking: boolean) {
    this.#isAsking = isAsking;
  }

  bind: Datagrams['bind'] = async ({ port, receive }) => {
    const id = this.#receivers.push({ port, receive }) - 1;
    const send = (datagram: Buffer, to: Endpoint) => this.#note(port, datagram, to);
    return { forwardId: this.#isAsking ? id : null, port, send, close: async () => {} };
  };

  forwardBy(forwarder: DatagramForwarder): void {
    if (this.#isAsking) this.#forwarder = forwarder;
  }

  /** A datagram arrives. */
  receive(port: number, datagram: Buffer, from: Endpoint): void {
    const id = this.#receivers.findIndex((socket) => socket.port === port);
    datagram.copy(this.#bytes);
    const sender = this.#forward(id, datagram.length, from);
    const here = this.#bytes.subarray(0, datagram.length);
    if (sender < 0) {
      this.#receivers[id]!.receive(here, from);
      return;
    }
    this.forwarded += 1;
    const target = new Endpoint();
    readSocketAddress(Int32Array.of(this.#forwarder!.destination0, this.#forwarder!.destination1), 0, target);
    this.#note(this.#receivers[sender]!.port, here, target);
  }

  #forward(id: number, bytes: number, from: Endpoint): number {
    const source = new Int32Array(2);
    writeIPv4Address(source, 0, from);
    this.#forwarder?.beginTurn();
    const memory = { bytes: this.#bytes, words: this.#words };
    return this.#forwarder?.forward(id, memory, 0, bytes, source[0]!, source[1]!) ?? -1;
  }

  #note(port: number, datagram: Buffer, to: Endpoint): void {
    this.sent.push({ port, to: to.port, datagram: Buffer.from(datagram) });
  }

  dump(): null {
    return null;
  }

  close(): void {}
}

/** A bridged call between phones without sockets, with a fake clock. */
class Call {
  readonly events: unknown[] = [];
  readonly sockets: MemorySockets;
  nowMs = 1000;
  session!: RelaySession;
  readonly #recordings: string[] = [];
  #pace: (() => void) | null = null;
  readonly #phones = {
    agent: {
      sequence: 65_500,
      timestamp: 2 ** 32 - 1600,
      ssrc: 0x9000_0001,
      payloadType: 0,
      said: new Map<number, { timestamp: number; payload: Uint8Array }>(),
    },
    customer: {
      sequence: 7,
      timestamp: 2 ** 31 - 800,
      ssrc: 0x2000,
      payloadType: 0,
      said: new Map<number, { timestamp: number; payload: Uint8Array }>(),
    },
  };

  private constructor(isFast: boolean) {
    this.sockets = new MemorySockets(isFast);
  }

  static async open(isFast: boolean): Promise<Call> {
    const call = new Call(isFast);
    const clock = { nowMs: () => call.nowMs, unixMs: () => 1_700_000_000_000 + call.nowMs };
    const after = (_delayMs: number, callback: () => void) => {
      call.#pace = callback;
      return () => {
        call.#pace = null;
      };
    };
    call.session = await RelaySession.open({
      bindHost: '127.0.0.1',
      rtpPorts: RTP_PORT,
      rtpTimeoutMs: 2000,
      datagrams: call.sockets,
      pacer: new FramePacer({ nowMs: clock.nowMs, after }),
      sendRing: new SendRing(),
      fastPath: new FastPath(call.sockets, clock),
      clock,
      post: (event) => call.events.push(event),
    });
    for (const side of SIDES) await call.connect(side);
    call.bridge();
    return call;
  }

  connect(side: Side, changes: Partial<RemoteMedia> = {}): Promise<void> {
    const remote = {
      host: '127.0.0.1',
      rtpPort: PHONE_PORT[side],
      rtcpPort: PHONE_PORT[side] + 1,
      direction: 'sendrecv',
    };
    const payload = { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101, hasComfortNoise: true };
    this.#phones[side].payloadType = changes.payloadType ?? 0;
    return this.session.connectParty(side, { ...remote, ...payload, ...changes } as RemoteMedia);
  }

  bridge(watched: Side[] = ['agent', 'customer']): void {
    this.session.setRouting({ receives: { agent: [{ party: 'customer' }], customer: [{ party: 'agent' }] }, watched });
  }

  say(side: Side, packet: Packet): void {
    const phone = this.#phones[side];
    phone.sequence = (phone.sequence + packet.steps) & 0xffff;
    if (packet.isNewSource) phone.ssrc += 1;
    // A repeated packet has the same timestamp and payload.
    const said = phone.said.get(phone.sequence) ?? {
      timestamp: (phone.timestamp + packet.ticks) >>> 0,
      payload: packet.payload ?? Buffer.alloc(packet.octets, packet.level),
    };
    phone.said.set(phone.sequence, said);
    phone.timestamp = said.timestamp;
    const datagram = buildRtpPacket(
      { ...phone, payloadType: packet.payloadType ?? phone.payloadType, marker: packet.isMarked },
      said.payload,
    );
    if (packet.isPadded) datagram[0]! |= 0x20;
    const port = PHONE_PORT[side] + (packet.isStranger ? 40 : 0);
    this.sockets.receive(RTP_PORT[side], datagram, Endpoint.of('127.0.0.1', port));
  }

  /** The usual packet after 20 ms. */
  speak(side: Side, changes: Partial<Packet> = {}): void {
    this.say(side, { ...USUAL, ...changes });
  }

  /** Both sides speak, with the session's ticks. */
  talk(frames: number): void {
    for (let frame = 0; frame < frames; frame++) {
      for (const speaker of SIDES) this.speak(speaker);
      this.pass(20);
      if (frame % 12 === 11) this.session.tick();
    }
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.#pace?.();
  }

  async record(): Promise<void> {
    const filePath = path.join(folder, `${randomUUID()}.wav`);
    await this.session.startRecording({ filePath, channels: { agent: 0, customer: 1 } });
    this.#recordings.push(filePath);
  }

  async recorded(): Promise<Buffer[]> {
    await this.session.stopRecording();
    return Promise.all(this.#recordings.map((file) => readFile(file)));
  }

  /** All that was sent and reported, without random numbers. */
  outcome(): unknown {
    const first = new Map<number, { sequence: number; timestamp: number }>();
    const sent = this.sockets.sent.map(({ port, to, datagram }) => {
      const header = emptyRtpHeader();
      if (!parseRtp(datagram, header)) return { port, to, rtcpBytes: datagram.length };
      const start = first.get(port) ?? first.set(port, { ...header }).get(port)!;
      const { marker, payloadType } = header;
      return {
        ...{ port, to, marker, payloadType },
        sequence: (header.sequence - start.sequence) & 0xffff,
        timestamp: (header.timestamp - start.timestamp) >>> 0,
        payload: datagram.subarray(header.payloadOffset).toString('hex'),
      };
    });
    // Without ticks, the recorder writes when its memory is full. Kept packets reach it in another order, and then it
    // may have written half a second more.
    const isComparable = (key: string): boolean => key !== 'ssrc' && key !== 'seconds';
    const dump = JSON.parse(
      JSON.stringify(this.session.dump(), (key, value) => (isComparable(key) ? value : undefined)),
    );
    return { sent, dump, samples: this.session.sampleQuality(), events: this.events };
  }
}

interface Packet {
  /** Undefined: of the phone's codec. */
  payloadType: number | undefined;
  octets: number;
  level: number;
  /** In place of octets of one level. */
  payload?: Uint8Array;
  steps: number;
  ticks: number;
  isMarked: boolean;
  isPadded: boolean;
  isNewSource: boolean;
  isStranger: boolean;
}

const USUAL: Packet = {
  ...{ payloadType: undefined, octets: 160, level: 0x20, steps: 1, ticks: 160 },
  ...{ isMarked: false, isPadded: false, isNewSource: false, isStranger: false },
};

const usually = <T>(value: T, ...rarely: T[]) =>
  fc.oneof({ weight: 40, arbitrary: fc.constant(value) }, { weight: 2, arbitrary: fc.constantFrom(...rarely) });

const packet = fc.record<Packet>({
  payloadType: usually<number | undefined>(undefined, 0, 8, 9, 13, 101, 77),
  octets: usually(160, 0, 4, 80, 237, 241, 1441),
  level: fc.constantFrom(0x20, 0x60, 0xff),
  steps: usually(1, 0, 2, -1, 5000),
  ticks: usually(160, 0, -160, 16_000, 16_160),
  isMarked: usually(false, true),
  isPadded: usually(false, true),
  isNewSource: usually(false, true),
  isStranger: usually(false, true),
});
const side = fc.constantFrom(...SIDES);

type Step = (call: Call) => unknown;

/** Calls of the session. Each must leave the fast path first, or read what was sent on it. */
const change = fc.oneof(
  fc.constant<Step>((call) => call.session.tick()),
  fc.constant<Step>((call) => call.session.quality()),
  fc.constant<Step>((call) => call.bridge([])),
  fc.constant<Step>((call) => call.session.setRouting({ receives: { agent: 'hold-music' }, watched: ['customer'] })),
  fc.constant<Step>((call) => call.session.setMeasured(true)),
  fc.constant<Step>((call) => call.session.setMeasured(false)),
  side.map<Step>((side) => (call) => call.connect(side, { direction: 'sendonly' })),
  side.map<Step>((side) => (call) => call.connect(side, { codec: 'PCMA', payloadType: 8 })),
  fc.constant<Step>((call) => Promise.all(SIDES.map((side) => call.connect(side, { codec: 'G722', payloadType: 9 })))),
  // Refused if a recording is running already, or none is.
  fc.constant<Step>((call) => call.record().catch(() => {})),
  fc.constantFrom(true, false).map<Step>((isPaused) => (call) => {
    try {
      call.session.pauseRecording(isPaused);
    } catch {}
  }),
  fc.constant<Step>((call) => call.session.stopRecording()),
  side.map<Step>((side) => (call) => call.connect(side, { telephoneEventPayloadType: null })),
  side.map<Step>((side) => (call) => call.connect(side, { rtpPort: PHONE_PORT[side] + 40 })),
  side.map<Step>((side) => (call) => call.connect(side)),
  side.map<Step>((side) => (call) => call.session.detectMachine(side)),
  side.map<Step>((side) => (call) => void call.session.sendDigits(side, { digits: '1', durationMs: 80 })),
  fc.tuple(side, fc.boolean()).map<Step>(([side, over]) => (call) => {
    void call.session.play(side, { samples: new Int16Array(400).fill(900), sampleRateHz: 8000, over });
  }),
  side.map<Step>((side) => (call) => call.session.stopPlaying(side)),
  fc.constantFrom(5, 60, 400, 2500).map<Step>((ms) => (call) => call.pass(ms)),
);
const talk = fc.tuple(packet, packet).map<Step>(([agent, customer]) => (call) => {
  call.say('agent', agent);
  call.say('customer', customer);
  call.pass(20);
});
const steps = fc.array(fc.oneof({ weight: 30, arbitrary: talk }, { weight: 1, arbitrary: change }), {
  maxLength: 120,
  size: 'max',
});

async function afterSteps(isFast: boolean, taken: readonly Step[]): Promise<Call> {
  const call = await Call.open(isFast);
  for (const step of taken) await step(call);
  return call;
}

let folder: string;

describe('fast path', () => {
  beforeEach(async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    folder = await mkdtemp(path.join(tmpdir(), 'tandem-fast-path-'));
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await rm(folder, { recursive: true });
  });

  it('sends, counts and reports the same as the session alone, whatever happens', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const fast = await afterSteps(true, taken);
        const plain = await afterSteps(false, taken);
        expect(fast.outcome()).toEqual(plain.outcome());
        expect(await fast.recorded()).toEqual(await plain.recorded());
      }),
      // To simplify a failure would take many minutes.
      { numRuns: 50, interruptAfterTimeLimit: 60_000 },
    );
  });

  it('takes all packets of a plain call but the first ones', async () => {
    const call = await Call.open(true);
    call.talk(100);
    expect(call.sockets.forwarded).toBeGreaterThanOrEqual(2 * 98);
    expect(call.session.quality().agent).toMatchObject({ packets_received: 100, packets_lost: 0 });
  });

  it.each<[string, Step]>([
    ['recorded', (call) => call.record()],
    ['measured', (call) => call.session.setMeasured(true)],
    ['in G.722', (call) => Promise.all(SIDES.map((side) => call.connect(side, { codec: 'G722', payloadType: 9 })))],
  ])('takes the packets of a call that is %s', async (_name, begin) => {
    const call = await Call.open(true);
    await begin(call);
    call.talk(100);
    expect(call.sockets.forwarded).toBeGreaterThanOrEqual(2 * 98);
    await call.session.close();
  });

  it('leaves packets to the session after 16 without a tick, so that no level is lost', async () => {
    const call = await Call.open(true);
    for (let frame = 0; frame < 36; frame++) {
      call.speak('agent');
      call.pass(20);
    }
    expect(call.sockets.forwarded).toBe(33);
    expect(call.sockets.sent.filter(({ port }) => port === RTP_PORT.customer)).toHaveLength(36);
  });

  it.each<[string, Step]>([
    ['a transcription', (call) => call.session.startTap({ agent: new MessageChannel().port1 })],
    ['machine detection', (call) => call.session.detectMachine('agent')],
    [
      'key presses to the listener',
      (call) => void call.session.sendDigits('customer', { digits: '12', durationMs: 80 }),
    ],
    ['another codec of the listener', (call) => call.connect('customer', { codec: 'PCMA', payloadType: 8 })],
    ['a listener on hold', (call) => call.connect('customer', { direction: 'sendonly' })],
  ])('takes no packet during %s', async (_name, begin) => {
    const call = await Call.open(true);
    for (let frame = 0; frame < 3; frame++) call.speak('agent');
    const before = call.sockets.forwarded;
    await begin(call);
    for (let frame = 0; frame < 3; frame++) call.speak('agent');
    expect(call.sockets.forwarded).toBe(before);
  });

  it('keeps all audio of a recording, also if the thread stalls longer than the recorder can hold', async () => {
    const stall = async (isFast: boolean) => {
      const call = await Call.open(isFast);
      await call.record();
      call.talk(3);
      for (let frame = 0; frame < 10; frame++) {
        call.speak('customer');
        call.pass(20);
      }
      call.pass(4500);
      call.speak('agent', { isMarked: true });
      call.session.tick();
      return await call.recorded();
    };
    expect(await stall(true)).toEqual(await stall(false));
  });

  it.each([true, false])(
    'records packets that a stalled thread reads after its tick, on the fast path: %s',
    async (isFast) => {
      const stall = async (isTickFirst: boolean) => {
        const call = await Call.open(isFast);
        await call.record();
        call.talk(48);
        const readUntilMs = call.nowMs;
        call.pass(2000);
        if (isTickFirst) call.session.tick(readUntilMs);
        for (let frame = 0; frame < 100; frame++) for (const side of SIDES) call.speak(side);
        call.talk(48);
        return Buffer.concat(await call.recorded());
      };
      const [late, whole] = [await stall(true), await stall(false)];
      expect(late.equals(whole)).toBe(true);
    },
  );

  it('reports keys that are pressed as tones', async () => {
    const key = toneFrames('PCMU', { frequenciesHz: [770, 1336], durationMs: 100 });
    const pause = Array.from({ length: 10 }, () => new Uint8Array(160).fill(0xff));
    const press = async (isFast: boolean) => {
      const call = await Call.open(isFast);
      await call.connect('agent', { telephoneEventPayloadType: null });
      for (const [frame, payload] of [...pause, ...key, ...pause, ...key, ...pause].entries()) {
        call.speak('agent', { payload });
        call.pass(20);
        if (frame % 12 === 11) call.session.tick();
      }
      return call;
    };
    const fast = await press(true);
    expect(fast.sockets.forwarded).toBeGreaterThan(30);
    expect(fast.events.filter((event) => (event as MediaEvent<Side>).type === 'dtmf.pressed')).toMatchObject([
      { digit: '5', by: 'tone' },
      { digit: '5', by: 'tone' },
    ]);
    expect(fast.events).toEqual((await press(false)).events);
  });

  it('limits floods as the session does', async () => {
    const call = await Call.open(true);
    for (let sent = 0; sent < 1000; sent++) {
      call.speak('agent');
      if (sent % 12 === 11) call.session.tick();
    }
    const { counters } = (call.session.dump() as { parties: Record<Side, { counters: object }> }).parties.agent;
    expect(counters).toMatchObject({ flooded: 700 });
    expect(call.sockets.sent.filter(({ port }) => port === RTP_PORT.customer)).toHaveLength(300);
  });

  it('sends to the address to which the listener moved', async () => {
    const call = await Call.open(true);
    for (let frame = 0; frame < 3; frame++) for (const speaker of SIDES) call.speak(speaker);
    await call.connect('customer', { rtpPort: PHONE_PORT.customer + 40 });
    call.speak('agent');
    call.speak('customer', { isStranger: true });
    call.speak('agent');
    expect(call.sockets.sent.at(-1)).toMatchObject({ port: RTP_PORT.customer, to: PHONE_PORT.customer + 40 });
  });

  it('decodes a restarted stream that repeats the number of the last packet decoded', async () => {
    const outcomes = [];
    for (const isFast of [true, false]) {
      const call = await Call.open(isFast);
      const sayFrom = (timestamp: number, level: number) => {
        for (let frame = 0; frame < 10; frame++) {
          const header = { payloadType: 0, sequence: frame, timestamp: timestamp + 160 * frame, ssrc: 0x3000 };
          const datagram = buildRtpPacket(header, Buffer.alloc(160, level));
          call.sockets.receive(RTP_PORT.agent, datagram, Endpoint.of('127.0.0.1', PHONE_PORT.agent));
          call.pass(20);
        }
      };
      sayFrom(16_000, 0x20);
      await call.record();
      sayFrom(900_000, 0x60);
      outcomes.push([call.outcome(), await call.recorded()]);
    }
    expect(outcomes[0]).toEqual(outcomes[1]);
  });

  it('loses only the audio of a packet that a consumer fails to take', async () => {
    const outcomes = [];
    for (const isFast of [true, false]) {
      const call = await Call.open(isFast);
      await call.record();
      for (let frame = 0; frame < 3; frame++) call.speak('agent');
      const adding = vi.spyOn(SessionRecorder.prototype, 'addAudio').mockImplementationOnce(() => {
        throw new Error('no room');
      });
      for (let frame = 0; frame < 6; frame++) {
        call.speak('agent');
        call.pass(20);
      }
      call.session.tick();
      adding.mockRestore();
      outcomes.push(call.outcome());
    }
    expect(outcomes[0]).toMatchObject({ dump: { faults: { count: 1, last: 'no room' } } });
    expect(outcomes[0]).toEqual(outcomes[1]);
  });
});
