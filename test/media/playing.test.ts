import { describe, expect, it } from 'vitest';
import { decodeG711, encodeG711, type G711Codec } from '../../media/codecs/g711.ts';
import { levelDbov } from '../../media/dsp/level.ts';
import { FRAME_SAMPLES, recordingTone, tone, toneFrames } from '../../media/dsp/tones.ts';
import { Playback } from '../../media/relay/playback.ts';
import { RTP_HEADER_BYTES } from '../../media/rtp/packet.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { Bench, expectContinuous } from './relay-bench.ts';
import type { RtpPhone } from './rtp-phone.ts';

const SPEECH = Int16Array.from({ length: 1040 }, (_, i) => 50 + i * 20);
const SPEECH_FRAMES = 7;
const CUSTOMER_HZ = 1000;
const WHISPER_HZ = 400;
const RECORDING_TONE_HZ = 1400;

describe('playback to a leg', () => {
  for (const codec of ['PCMU', 'PCMA'] as const) {
    it(`arrives whole and in order, at that leg only, in ${codec}`, async () => {
      await using bench = await Bench.open();
      await bench.connect({ agent: bench.agent.remote(codec) });
      const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
      bench.pace(10);
      expect(await end).toBe('played');
      await bench.agent.untilReceived(SPEECH_FRAMES);
      expect(bench.agent.receivedSamples(codec)).toEqual(throughCodec(codec, SPEECH));
      expect(bench.agent.received.every(({ header }) => header.payloadType === (codec === 'PCMU' ? 0 : 8))).toBe(true);
      expect(bench.agent.received.map(({ header }) => header.marker)).toEqual([true, ...Array(6).fill(false)]);
      expectContinuous(bench.agent.received.map(({ header }) => header));
      expect(bench.customer.received).toEqual([]);
      expect(bench.events).toEqual([{ type: 'playback.started', leg: 'agent' }]);
    });
  }

  it('forms one stream with ringback before and the bridged party after', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('ringback');
    bench.pace(5);
    bench.setPath('idle');
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
    bench.pace(SPEECH_FRAMES);
    expect(await end).toBe('played');
    bench.setPath('bridged');
    for (let i = 0; i < 5; i++) {
      bench.nowMs += 20;
      bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[i]!);
      await bench.agent.untilReceived(5 + SPEECH_FRAMES + i + 1);
    }
    const headers = bench.agent.received.map(({ header }) => header);
    expectContinuous(headers);
    expect(headers.flatMap((header, index) => (header.marker ? [index] : []))).toEqual([0, 5, 12]);
  });

  it('replaces ringback, which continues afterwards', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('ringback');
    bench.pace(2);
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
    bench.pace(SPEECH_FRAMES);
    expect(await end).toBe('played');
    bench.pace(2);
    const frames = 2 + SPEECH_FRAMES + 2;
    await bench.agent.untilReceived(frames);
    expect(bench.agent.received).toHaveLength(frames);
    const said = bench.agent.receivedSamples('PCMU', 2).subarray(0, SPEECH_FRAMES * FRAME_SAMPLES);
    expect(said).toEqual(throughCodec('PCMU', SPEECH));
    expectContinuous(bench.agent.received.map(({ header }) => header));
  });

  it('replaces the other party unless mixed over it', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
    bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[0]!);
    await bench.settled('customer');
    bench.pace(SPEECH_FRAMES);
    expect(await end).toBe('played');
    await bench.agent.untilReceived(SPEECH_FRAMES);
    expect(bench.agent.receivedSamples('PCMU')).toEqual(throughCodec('PCMU', SPEECH));
  });

  it('continues at its position in a renegotiated codec', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
    bench.pace(3);
    await bench.agent.untilReceived(3);
    await bench.session.connectParty('agent', bench.agent.remote('PCMA'));
    bench.pace(5);
    expect(await end).toBe('played');
    await bench.agent.untilReceived(SPEECH_FRAMES);
    expect(bench.agent.received.map(({ header }) => header.payloadType)).toEqual([0, 0, 0, 8, 8, 8, 8]);
    expect(bench.agent.receivedSamples('PCMA', 3)).toEqual(throughCodec('PCMA', SPEECH).subarray(3 * FRAME_SAMPLES));
    expectContinuous(bench.agent.received.map(({ header }) => header));
  });

  it('pauses during hold and continues at its position', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('PCMU', { direction: 'sendonly' }) });
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
    bench.pace(5);
    expect(bench.events).toEqual([]);
    await bench.session.connectParty('agent', bench.agent.remote());
    bench.pace(2);
    await bench.session.connectParty('agent', bench.agent.remote('PCMU', { direction: 'sendonly' }));
    bench.pace(50);
    await bench.session.connectParty('agent', bench.agent.remote());
    bench.pace(SPEECH_FRAMES);
    expect(await end).toBe('played');
    await bench.agent.untilReceived(SPEECH_FRAMES);
    expect(bench.agent.receivedSamples('PCMU')).toEqual(throughCodec('PCMU', SPEECH));
    expectContinuous(bench.agent.received.map(({ header }) => header));
  });

  it('stops for a new routing, another playback and the end of the session', async () => {
    const stops: [string, (bench: Bench) => unknown][] = [
      ['a path', (bench) => bench.setPath('ringback')],
      ['the same path', (bench) => bench.setPath('idle')],
      ['something else', (bench) => bench.session.play('agent', { samples: SPEECH.slice(), over: true })],
      ['the end', (bench) => bench.session.close()],
    ];
    for (const [name, stop] of stops) {
      await using bench = await Bench.open();
      await bench.connect();
      const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
      bench.pace(2);
      void stop(bench);
      expect(await end, name).toBe('stopped');
    }
  });

  it('accounts for elapsed time after a pause', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    void bench.session.play('agent', { samples: SPEECH.slice(0, 320), over: false });
    bench.pace(2);
    bench.nowMs += 1000;
    void bench.session.play('agent', { samples: SPEECH.slice(0, 320), over: false });
    bench.pace(2);
    await bench.agent.untilReceived(4);
    const headers = bench.agent.received.map(({ header }) => header);
    expectContinuous(headers);
    expect((headers[2]!.timestamp - headers[1]!.timestamp) | 0).toBe(8 * 1020);
  });

  it('fails in a closed session', async () => {
    await using bench = await Bench.open();
    await bench.session.close();
    expect(() => bench.session.play('agent', { samples: SPEECH.slice(), over: false })).toThrow(RangeError);
  });

  it('completes at once when empty', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.play('agent', { samples: new Int16Array(0), over: false });
    bench.pace(1);
    expect(await end).toBe('played');
  });

  it('affects neither quality nor recording of the legs', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    void bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    bench.pace(SPEECH_FRAMES);
    await bench.agent.untilReceived(SPEECH_FRAMES);
    expect(bench.session.quality()).toMatchObject({
      agent: { packets_received: 0 },
      customer: { packets_received: 0 },
    });
  });
});

describe('playback over the other party', () => {
  for (const [agentCodec, customerCodec] of [
    ['PCMU', 'PCMU'],
    ['PCMA', 'PCMA'],
    ['PCMU', 'PCMA'],
    ['PCMA', 'PCMU'],
  ] as const) {
    it(`ducks them by 12 dB, ${customerCodec} to ${agentCodec}, without reaching the customer`, async () => {
      await using bench = await Bench.open();
      await bench.connect({ agent: bench.agent.remote(agentCodec), customer: bench.customer.remote(customerCodec) });
      bench.setPath('bridged');
      const whisper = tone({ frequenciesHz: [WHISPER_HZ], durationMs: 800, levelDbfs: -16 });
      const customer = toneFrames(customerCodec, { frequenciesHz: [CUSTOMER_HZ], durationMs: 1600, levelDbfs: -10 });
      const agent = toneFrames(agentCodec, { frequenciesHz: [600], durationMs: 1600, levelDbfs: -10 });
      const speak = async (from: number, to: number): Promise<void> => {
        for (let i = from; i < to; i++) {
          bench.pace(1);
          bench.customer.say(bench.ports.customer, customerCodec, customer[i]!);
          bench.agent.say(bench.ports.agent, agentCodec, agent[i]!);
          await Promise.all([bench.agent.untilReceived(i + 1), bench.customer.untilReceived(i + 1)]);
        }
      };
      await speak(0, 20);
      const end = bench.session.play('agent', { samples: whisper, over: true });
      await speak(20, 80);
      expect(await end).toBe('played');

      const received = bench.agent.receivedSamples(agentCodec);
      const [before, during, after] = [
        received.subarray(0, 20 * FRAME_SAMPLES),
        received.subarray(24 * FRAME_SAMPLES, 56 * FRAME_SAMPLES),
        received.subarray(61 * FRAME_SAMPLES),
      ];
      for (const alone of [before, after]) {
        expect(toneLevelDbov(alone, CUSTOMER_HZ)).toBeCloseTo(-13, 0);
        expect(toneLevelDbov(alone, WHISPER_HZ)).toBeLessThan(-45);
      }
      expect(toneLevelDbov(during, CUSTOMER_HZ)).toBeCloseTo(-25, 0);
      expect(toneLevelDbov(during, WHISPER_HZ)).toBeCloseTo(-19, 0);
      const atCustomer = bench.customer.receivedSamples(customerCodec);
      expect(toneLevelDbov(atCustomer, 600)).toBeCloseTo(-13, 0);
      expect(toneLevelDbov(atCustomer, WHISPER_HZ)).toBeLessThan(-45);
      // The stream continues without a gap in its numbers.
      const headers = bench.agent.received.map(({ header }) => header);
      expectContinuous(headers);
      expect(headers.filter(({ marker }) => marker)).toHaveLength(1);
      expect(bench.agent.received).toHaveLength(80);
    });
  }

  it('continues by its own clock while they are silent, as one continuous stream', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    // Before their first packet.
    bench.pace(2);
    await bench.agent.untilReceived(2);
    for (let i = 0; i < 3; i++) {
      bench.customer.say(bench.ports.customer, 'PCMU', SILENCE);
      await bench.agent.untilReceived(3 + i);
      bench.pace(1);
    }
    expect(bench.agent.received).toHaveLength(5);
    // They stop; playback continues after 100 ms.
    bench.pace(4);
    expect(bench.agent.received).toHaveLength(5);
    bench.pace(10);
    expect(await end).toBe('played');
    await bench.agent.untilReceived(SPEECH_FRAMES);
    const received = bench.agent.receivedSamples('PCMU');
    expect(received).toEqual(throughCodec('PCMU', SPEECH));
    expectContinuous(bench.agent.received.map(({ header }) => header));
  });

  it('stops without side effects when the current routing is set again', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[0]!);
    await bench.agent.untilReceived(1);
    await bench.session.connectParty('agent', bench.agent.remote('PCMU', { direction: 'sendonly' }));
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    bench.pace(20);
    bench.setPath('bridged');
    expect(await end).toBe('stopped');
    await bench.session.connectParty('agent', bench.agent.remote());
    for (const [index, payload] of CUSTOMER.slice(1, 4).entries()) {
      bench.customer.say(bench.ports.customer, 'PCMU', payload);
      await bench.agent.untilReceived(2 + index);
      bench.setPath('bridged');
      bench.pace(1);
    }
    expect(bench.agent.received.map(({ payload }) => payload)).toEqual(
      CUSTOMER.slice(0, 4).map((it) => Buffer.from(it)),
    );
    expect(bench.agent.received.map(({ header }) => header.marker)).toEqual([true, true, false, false]);
    expect(bench.events).not.toContainEqual({ type: 'playback.started', leg: 'agent' });
  });

  it('lets their key presses pass, and adds nothing to them', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[0]!);
    await bench.agent.untilReceived(1);
    void bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    bench.customer.press(bench.ports.customer, 5);
    await bench.agent.untilReceived(6);
    bench.pace(1);
    expect(bench.agent.received).toHaveLength(6);
    const keys = bench.agent.received.slice(1);
    expect(keys.every(({ header, payload }) => header.payloadType === 101 && payload.length === 4)).toBe(true);
    expect(new Set(keys.map(({ header }) => header.timestamp)).size).toBe(1);
    expect(bench.events).not.toContainEqual({ type: 'playback.started', leg: 'agent' });
  });

  it('leaves no gap when they send comfort noise', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[0]!);
    await bench.agent.untilReceived(1);
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    for (let i = 0; i < 12; i++) {
      // RFC 3389. The agent did not negotiate it and receives it as audio.
      bench.customer.sendRtp(bench.ports.customer, { payloadType: 13 }, Uint8Array.of(60));
      await bench.settled('customer');
      bench.pace(1);
    }
    expect(await end).toBe('played');
    await bench.agent.untilReceived(1 + SPEECH_FRAMES);
    const said = throughCodec('PCMU', SPEECH);
    const error = bench.agent
      .receivedSamples('PCMU', 1)
      .subarray(0, said.length)
      .map((sample, i) => sample - said[i]!);
    expect(levelDbov(error)).toBeLessThan(-50);
    expectContinuous(bench.agent.received.map(({ header }) => header));
  });
});

describe('looped playback', () => {
  it('repeats without a gap until stopped', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false, isLooped: true });
    bench.pace(SPEECH_FRAMES * 3);
    await bench.agent.untilReceived(SPEECH_FRAMES * 3);
    const thrice = Int16Array.from({ length: SPEECH.length * 3 }, (_, i) => SPEECH[i % SPEECH.length]!);
    const received = bench.agent.receivedSamples('PCMU').subarray(0, thrice.length);
    expect(received).toEqual(throughCodec('PCMU', thrice).subarray(0, received.length));
    bench.session.stopPlaying('agent');
    expect(await end).toBe('stopped');
    bench.pace(5);
    expect(bench.agent.received).toHaveLength(SPEECH_FRAMES * 3);
    expectContinuous(bench.agent.received.map(({ header }) => header));
  });

  it('ducks the other party throughout', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    void bench.session.play('agent', { samples: new Int16Array(1000), over: true, isLooped: true });
    for (let i = 0; i < 30; i++) {
      bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[i % CUSTOMER.length]!);
      await bench.agent.untilReceived(i + 1);
    }
    const received = bench.agent.receivedSamples('PCMU');
    const full = new Int16Array(8 * FRAME_SAMPLES);
    decodeG711('PCMU', Buffer.concat(Array.from({ length: 8 }, (_, i) => CUSTOMER[i % CUSTOMER.length]!)), full);
    const before = toneLevelDbov(full, CUSTOMER_HZ);
    for (let from = 4; from + 8 <= 30; from += 8) {
      const part = received.subarray(from * FRAME_SAMPLES, (from + 8) * FRAME_SAMPLES);
      expect(toneLevelDbov(part, CUSTOMER_HZ) - before).toBeCloseTo(-12, 0);
    }
  });

  it('reports its id at the start, and skips a leg on hold if requested', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const sound = { samples: SPEECH.slice(), over: false, ifListening: true };
    void bench.session.play('agent', { ...sound, playbackId: 'play_1' });
    bench.pace(1);
    expect(bench.events).toEqual([{ type: 'playback.started', leg: 'agent', playbackId: 'play_1' }]);
    await bench.session.connectParty('agent', bench.agent.remote('PCMU', { direction: 'sendonly' }));
    expect(await bench.session.play('agent', { ...sound, playbackId: 'play_2' })).toBe('not-listening');
    expect(bench.events).toHaveLength(1);
  });

  it('ends if the leg goes on hold before it starts, if requested', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const sound = { samples: SPEECH.slice(), over: false, ifListening: true };
    const end = bench.session.play('agent', { ...sound, playbackId: 'play_1' });
    await bench.session.connectParty('agent', bench.agent.remote('PCMU', { direction: 'sendonly' }));
    bench.pace(1);
    expect(await end).toBe('not-listening');
    expect(bench.events).toEqual([]);
  });
});

describe('recording tone', () => {
  it('sounds at 1400 Hz for half a second over both parties, and in no recording', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const beep = bench.session.beep(['agent', 'customer']);
    // The agent also hears the customer; the customer hears the tone only.
    for (let i = 0; i < 25; i++) {
      bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[i % CUSTOMER.length]!);
      await bench.agent.untilReceived(i + 1);
      bench.pace(1);
    }
    await beep;
    await bench.customer.untilReceived(25);
    for (const received of [bench.agent.receivedSamples('PCMU'), bench.customer.receivedSamples('PCMU')]) {
      expect(received.length).toBe(25 * FRAME_SAMPLES);
      expect(toneLevelDbov(received.subarray(800, 3200), RECORDING_TONE_HZ)).toBeGreaterThan(-22);
    }
    expect(toneLevelDbov(bench.agent.receivedSamples('PCMU').subarray(800, 3200), CUSTOMER_HZ)).toBeGreaterThan(-30);
    expect(bench.events.filter(({ type }) => type === 'playback.started')).toEqual([]);
  });

  it('waits for a phone that has put the call on hold', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMU', { direction: 'sendonly' }) });
    let hasEnded = false;
    const beeping = bench.session.beep(['customer']).then(() => {
      hasEnded = true;
    });
    bench.pace(100);
    await bench.settled('agent');
    expect(hasEnded).toBe(false);
    await bench.session.connectParty('customer', bench.customer.remote());
    bench.pace(30);
    await beeping;
  });

  it('begins and ends without a click', () => {
    const samples = recordingTone();
    expect(samples.length).toBe(8000);
    expect(Math.max(...samples.subarray(0, 8), ...samples.subarray(-8))).toBeLessThan(600);
    expect(recordingTone()).toBe(samples);
  });
});

describe('playback mixer', () => {
  it('plays everything once for any cut, doubled or swapped packets', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 4000 }), { maxLength: 900 }),
        fc.array(fc.record({ octets: fc.integer({ min: 1, max: 500 }), isAgain: fc.boolean() }), { maxLength: 30 }),
        fc.constantFrom<G711Codec>('PCMU', 'PCMA'),
        (samples, packets, codec) => {
          const said = Int16Array.from(samples);
          const playback = new Playback({ samples: said, over: true, onStarted: () => {}, onEnded: () => {} });
          const received: number[] = [];
          let sequence = 65_533;
          for (const { octets, isAgain } of packets) {
            const packet = new Uint8Array(RTP_HEADER_BYTES + octets);
            const other = new Uint8Array(octets).fill(codec === 'PCMU' ? 0xff : 0xd5);
            sequence = (sequence + 1) & 0xffff;
            playback.mix('PCMU', packet, sequence, codec, other, 0);
            received.push(...packet.subarray(RTP_HEADER_BYTES));
            const late = new Uint8Array(RTP_HEADER_BYTES + Math.ceil(octets / 2));
            if (isAgain) playback.mix('PCMU', late, (sequence - 1) & 0xffff, codec, other, 0);
          }
          const linear = new Int16Array(received.length);
          decodeG711('PCMU', Uint8Array.from(received), linear);
          // A-law has no zero, so silence of the other party adds up to eight.
          for (let i = 0; i < Math.min(received.length, said.length); i++) {
            expect(Math.abs(linear[i]! - said[i]!)).toBeLessThanOrEqual(8 + said[i]! / 16 + 8);
          }
          expect(playback.isSpent).toBe(received.length >= said.length);
        },
      ),
    );
  });

  it('consumes samples for a party that returns long after its last packet', () => {
    const samples = Int16Array.from({ length: 800 }, (_, i) => 20 * i);
    const playback = new Playback({ samples, over: true, isLooped: true, onStarted: () => {}, onEnded: () => {} });
    const silence = new Uint8Array(FRAME_SAMPLES).fill(0xff);
    const packet = new Uint8Array(RTP_HEADER_BYTES + FRAME_SAMPLES);
    playback.mix('PCMU', packet, 0, 'PCMU', silence, 0);
    // Generated frames have sequence numbers too: more than half of them, 13 minutes.
    for (let i = 0; i < 40_000; i++) playback.takeFrame('PCMU', packet);
    const taken = Array.from({ length: 2 }, (_, i) => {
      playback.mix('PCMU', packet, 40_001 + i, 'PCMU', silence, 0);
      return packet.slice(RTP_HEADER_BYTES);
    });
    const linear = new Int16Array(2 * FRAME_SAMPLES);
    decodeG711('PCMU', Buffer.concat(taken), linear);
    const expected = Int16Array.from({ length: 320 }, (_, i) => samples[(160 + i) % 800]!);
    expect(linear).toEqual(throughCodec('PCMU', expected));
  });

  it('clips without wrap-around', () => {
    const said = new Int16Array(2000).fill(32_767);
    const playback = new Playback({ samples: said, over: true, onStarted: () => {}, onEnded: () => {} });
    const packet = new Uint8Array(RTP_HEADER_BYTES + 1400);
    // The largest positive octet of mu-law.
    playback.mix('PCMU', packet, 1, 'PCMU', new Uint8Array(1400).fill(0x80), 0);
    expect(new Set(packet.subarray(RTP_HEADER_BYTES))).toEqual(new Set([0x80]));
  });
});

const CUSTOMER = toneFrames('PCMU', { frequenciesHz: [CUSTOMER_HZ], durationMs: 400 });
const SILENCE = new Uint8Array(FRAME_SAMPLES).fill(0xff);

/** After the codec, in whole frames. */
function throughCodec(codec: G711Codec, samples: Int16Array): ReturnType<RtpPhone['receivedSamples']> {
  const padded = new Int16Array(Math.ceil(samples.length / FRAME_SAMPLES) * FRAME_SAMPLES);
  padded.set(samples);
  const octets = new Uint8Array(padded.length);
  encodeG711(codec, padded, octets);
  const received = new Int16Array(padded.length);
  decodeG711(codec, octets, received);
  return received;
}
