import { describe, expect, it } from 'vitest';
import { decodeG711, encodeG711, type G711Codec } from '../../media/codecs/g711.ts';
import { toneLevelDbov } from '../../media/dsp/goertzel.ts';
import { levelDbov } from '../../media/dsp/level.ts';
import { FRAME_SAMPLES, recordingTone, tone, toneFrames } from '../../media/dsp/tones.ts';
import { Playback } from '../../media/relay/playback.ts';
import { RTP_HEADER_BYTES } from '../../media/rtp/packet.ts';
import * as fc from '../properties.ts';
import { Bench, expectContinuous } from './relay-bench.ts';
import type { RtpPhone } from './rtp-phone.ts';

/** Six frames and a half. */
const SPEECH = Int16Array.from({ length: 1040 }, (_, i) => 50 + i * 20);
const SPEECH_FRAMES = 7;
const CUSTOMER_HZ = 1000;
const WHISPER_HZ = 400;
const RECORDING_TONE_HZ = 1400;

describe('what is played to a leg', () => {
  for (const codec of ['PCMU', 'PCMA'] as const) {
    it(`is heard by it whole and in order, and by nobody else, in ${codec}`, async () => {
      await using bench = await Bench.open();
      await bench.connect({ agent: bench.agent.remote(codec) });
      const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
      bench.pace(10);
      expect(await end).toBe('played');
      await bench.agent.hears(SPEECH_FRAMES);
      expect(bench.agent.samplesHeard(codec)).toEqual(asHeard(codec, SPEECH));
      expect(bench.agent.heard.every(({ header }) => header.payloadType === (codec === 'PCMU' ? 0 : 8))).toBe(true);
      expect(bench.agent.heard.map(({ header }) => header.marker)).toEqual([true, ...Array(6).fill(false)]);
      expectContinuous(bench.agent.heard.map(({ header }) => header));
      expect(bench.customer.heard).toEqual([]);
      expect(bench.events).toEqual([{ type: 'playback.started', leg: 'agent' }]);
    });
  }

  it('is one stream with the ringing before it and the other party after it', async () => {
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
      await bench.agent.hears(5 + SPEECH_FRAMES + i + 1);
    }
    const headers = bench.agent.heard.map(({ header }) => header);
    expectContinuous(headers);
    expect(headers.flatMap((header, index) => (header.marker ? [index] : []))).toEqual([0, 5, 12]);
  });

  it('takes the place of the ringing, which goes on after it', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('ringback');
    bench.pace(2);
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
    bench.pace(SPEECH_FRAMES);
    expect(await end).toBe('played');
    bench.pace(2);
    const frames = 2 + SPEECH_FRAMES + 2;
    await bench.agent.hears(frames);
    expect(bench.agent.heard).toHaveLength(frames);
    const said = bench.agent.samplesHeard('PCMU', 2).subarray(0, SPEECH_FRAMES * FRAME_SAMPLES);
    expect(said).toEqual(asHeard('PCMU', SPEECH));
    expectContinuous(bench.agent.heard.map(({ header }) => header));
  });

  it('takes the place of the other party unless it is to go over them', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
    bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[0]!);
    await bench.settled('customer');
    bench.pace(SPEECH_FRAMES);
    expect(await end).toBe('played');
    await bench.agent.hears(SPEECH_FRAMES);
    expect(bench.agent.samplesHeard('PCMU')).toEqual(asHeard('PCMU', SPEECH));
  });

  it('goes on in the codec to which the leg changes meanwhile, where it was', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false });
    bench.pace(3);
    await bench.agent.hears(3);
    await bench.session.connectParty('agent', bench.agent.remote('PCMA'));
    bench.pace(5);
    expect(await end).toBe('played');
    await bench.agent.hears(SPEECH_FRAMES);
    expect(bench.agent.heard.map(({ header }) => header.payloadType)).toEqual([0, 0, 0, 8, 8, 8, 8]);
    expect(bench.agent.samplesHeard('PCMA', 3)).toEqual(asHeard('PCMA', SPEECH).subarray(3 * FRAME_SAMPLES));
    expectContinuous(bench.agent.heard.map(({ header }) => header));
  });

  it('waits while the leg has us on hold, and goes on where it was', async () => {
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
    await bench.agent.hears(SPEECH_FRAMES);
    expect(bench.agent.samplesHeard('PCMU')).toEqual(asHeard('PCMU', SPEECH));
    expectContinuous(bench.agent.heard.map(({ header }) => header));
  });

  it('is stopped by a path, by something else that is played, and by the end of the session', async () => {
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

  it('comes after a pause with the time that has gone by', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    void bench.session.play('agent', { samples: SPEECH.slice(0, 320), over: false });
    bench.pace(2);
    bench.nowMs += 1000;
    void bench.session.play('agent', { samples: SPEECH.slice(0, 320), over: false });
    bench.pace(2);
    await bench.agent.hears(4);
    const headers = bench.agent.heard.map(({ header }) => header);
    expectContinuous(headers);
    expect((headers[2]!.timestamp - headers[1]!.timestamp) | 0).toBe(8 * 1020);
  });

  it('is nothing that a closed session takes', async () => {
    await using bench = await Bench.open();
    await bench.session.close();
    expect(() => bench.session.play('agent', { samples: SPEECH.slice(), over: false })).toThrow(RangeError);
  });

  it('is over at once when it is empty', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.play('agent', { samples: new Int16Array(0), over: false });
    bench.pace(1);
    expect(await end).toBe('played');
  });

  it('is no part of what the leg, or the other one, is measured or recorded by', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    void bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    bench.pace(SPEECH_FRAMES);
    await bench.agent.hears(SPEECH_FRAMES);
    expect(bench.session.quality()).toMatchObject({
      agent: { packets_received: 0 },
      customer: { packets_received: 0 },
    });
  });
});

describe('what is said over the other party', () => {
  for (const [agentCodec, customerCodec] of [
    ['PCMU', 'PCMU'],
    ['PCMA', 'PCMA'],
    ['PCMU', 'PCMA'],
    ['PCMA', 'PCMU'],
  ] as const) {
    it(`is heard with them 12 dB lower, ${customerCodec} to ${agentCodec}, and the customer hears the agent alone`, async () => {
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
          await Promise.all([bench.agent.hears(i + 1), bench.customer.hears(i + 1)]);
        }
      };
      await speak(0, 20);
      const end = bench.session.play('agent', { samples: whisper, over: true });
      await speak(20, 80);
      expect(await end).toBe('played');

      const heard = bench.agent.samplesHeard(agentCodec);
      const [before, during, after] = [
        heard.subarray(0, 20 * FRAME_SAMPLES),
        heard.subarray(24 * FRAME_SAMPLES, 56 * FRAME_SAMPLES),
        heard.subarray(61 * FRAME_SAMPLES),
      ];
      for (const alone of [before, after]) {
        expect(toneLevelDbov(alone, CUSTOMER_HZ)).toBeCloseTo(-13, 0);
        expect(toneLevelDbov(alone, WHISPER_HZ)).toBeLessThan(-45);
      }
      expect(toneLevelDbov(during, CUSTOMER_HZ)).toBeCloseTo(-25, 0);
      expect(toneLevelDbov(during, WHISPER_HZ)).toBeCloseTo(-19, 0);
      const atCustomer = bench.customer.samplesHeard(customerCodec);
      expect(toneLevelDbov(atCustomer, 600)).toBeCloseTo(-13, 0);
      expect(toneLevelDbov(atCustomer, WHISPER_HZ)).toBeLessThan(-45);
      // The stream goes on as it was: nobody can tell by its numbers that something was said over it.
      const headers = bench.agent.heard.map(({ header }) => header);
      expectContinuous(headers);
      expect(headers.filter(({ marker }) => marker)).toHaveLength(1);
      expect(bench.agent.heard).toHaveLength(80);
    });
  }

  it('goes on by itself while they send nothing, without sending twice, as one continuous stream', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    // Before their first packet.
    bench.pace(2);
    await bench.agent.hears(2);
    for (let i = 0; i < 3; i++) {
      bench.customer.say(bench.ports.customer, 'PCMU', SILENCE);
      await bench.agent.hears(3 + i);
      bench.pace(1);
    }
    expect(bench.agent.heard).toHaveLength(5);
    // They fall silent: a tenth of a second later it goes on.
    bench.pace(4);
    expect(bench.agent.heard).toHaveLength(5);
    bench.pace(10);
    expect(await end).toBe('played');
    await bench.agent.hears(SPEECH_FRAMES);
    const heard = bench.agent.samplesHeard('PCMU');
    expect(heard).toEqual(asHeard('PCMU', SPEECH));
    expectContinuous(bench.agent.heard.map(({ header }) => header));
  });

  it('is left out, and nothing else is, by setting again the path that is set', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[0]!);
    await bench.agent.hears(1);
    await bench.session.connectParty('agent', bench.agent.remote('PCMU', { direction: 'sendonly' }));
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    bench.pace(20);
    bench.setPath('bridged');
    expect(await end).toBe('stopped');
    await bench.session.connectParty('agent', bench.agent.remote());
    for (const [index, payload] of CUSTOMER.slice(1, 4).entries()) {
      bench.customer.say(bench.ports.customer, 'PCMU', payload);
      await bench.agent.hears(2 + index);
      bench.setPath('bridged');
      bench.pace(1);
    }
    expect(bench.agent.heard.map(({ payload }) => payload)).toEqual(CUSTOMER.slice(0, 4).map((it) => Buffer.from(it)));
    expect(bench.agent.heard.map(({ header }) => header.marker)).toEqual([true, true, false, false]);
    expect(bench.events).not.toContainEqual({ type: 'playback.started', leg: 'agent' });
  });

  it('lets their keys pass, and does not speak into them', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[0]!);
    await bench.agent.hears(1);
    void bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    bench.customer.press(bench.ports.customer, 5);
    await bench.agent.hears(6);
    bench.pace(1);
    expect(bench.agent.heard).toHaveLength(6);
    const keys = bench.agent.heard.slice(1);
    expect(keys.every(({ header, payload }) => header.payloadType === 101 && payload.length === 4)).toBe(true);
    expect(new Set(keys.map(({ header }) => header.timestamp)).size).toBe(1);
    expect(bench.events).not.toContainEqual({ type: 'playback.started', leg: 'agent' });
  });

  it('leaves no hole where comfort noise comes instead of them', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[0]!);
    await bench.agent.hears(1);
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: true });
    for (let i = 0; i < 12; i++) {
      // RFC 3389. The agent has not agreed to it, and hears what it sounds like.
      bench.customer.sendRtp(bench.ports.customer, { payloadType: 13 }, Uint8Array.of(60));
      await bench.settled('customer');
      bench.pace(1);
    }
    expect(await end).toBe('played');
    await bench.agent.hears(1 + SPEECH_FRAMES);
    const said = asHeard('PCMU', SPEECH);
    const error = bench.agent
      .samplesHeard('PCMU', 1)
      .subarray(0, said.length)
      .map((sample, i) => sample - said[i]!);
    expect(levelDbov(error)).toBeLessThan(-50);
    expectContinuous(bench.agent.heard.map(({ header }) => header));
  });
});

describe('a sound that is repeated', () => {
  it('begins anew whenever it is over, without a gap, until it is stopped', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.play('agent', { samples: SPEECH.slice(), over: false, isLooped: true });
    bench.pace(SPEECH_FRAMES * 3);
    await bench.agent.hears(SPEECH_FRAMES * 3);
    const thrice = Int16Array.from({ length: SPEECH.length * 3 }, (_, i) => SPEECH[i % SPEECH.length]!);
    const heard = bench.agent.samplesHeard('PCMU').subarray(0, thrice.length);
    expect(heard).toEqual(asHeard('PCMU', thrice).subarray(0, heard.length));
    bench.session.stopPlaying('agent');
    expect(await end).toBe('stopped');
    bench.pace(5);
    expect(bench.agent.heard).toHaveLength(SPEECH_FRAMES * 3);
    expectContinuous(bench.agent.heard.map(({ header }) => header));
  });

  it('keeps the other party turned down throughout', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    void bench.session.play('agent', { samples: new Int16Array(1000), over: true, isLooped: true });
    for (let i = 0; i < 30; i++) {
      bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[i % CUSTOMER.length]!);
      await bench.agent.hears(i + 1);
    }
    const heard = bench.agent.samplesHeard('PCMU');
    const full = new Int16Array(8 * FRAME_SAMPLES);
    decodeG711('PCMU', Buffer.concat(Array.from({ length: 8 }, (_, i) => CUSTOMER[i % CUSTOMER.length]!)), full);
    const before = toneLevelDbov(full, CUSTOMER_HZ);
    for (let from = 4; from + 8 <= 30; from += 8) {
      const part = heard.subarray(from * FRAME_SAMPLES, (from + 8) * FRAME_SAMPLES);
      expect(toneLevelDbov(part, CUSTOMER_HZ) - before).toBeCloseTo(-12, 0);
    }
  });

  it('is named by its id when it begins, and is not played to a leg that does not listen if that was asked', async () => {
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

  it('ends if the leg stops listening before it begins, if that was asked', async () => {
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

describe('the recording tone', () => {
  it('sounds to both parties for half a second at 1400 Hz, over what they hear, and to no recording', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const beep = bench.session.beep(['agent', 'customer']);
    // The agent hears the customer meanwhile; the customer hears only the tone.
    for (let i = 0; i < 25; i++) {
      bench.customer.say(bench.ports.customer, 'PCMU', CUSTOMER[i % CUSTOMER.length]!);
      await bench.agent.hears(i + 1);
      bench.pace(1);
    }
    await beep;
    await bench.customer.hears(25);
    for (const heard of [bench.agent.samplesHeard('PCMU'), bench.customer.samplesHeard('PCMU')]) {
      expect(heard.length).toBe(25 * FRAME_SAMPLES);
      expect(toneLevelDbov(heard.subarray(800, 3200), RECORDING_TONE_HZ)).toBeGreaterThan(-22);
    }
    expect(toneLevelDbov(bench.agent.samplesHeard('PCMU').subarray(800, 3200), CUSTOMER_HZ)).toBeGreaterThan(-30);
    expect(bench.events.filter(({ type }) => type === 'playback.started')).toEqual([]);
  });

  it('begins and ends without a click', () => {
    const samples = recordingTone();
    expect(samples.length).toBe(8000);
    expect(Math.max(...samples.subarray(0, 8), ...samples.subarray(-8))).toBeLessThan(600);
    expect(recordingTone()).toBe(samples);
  });
});

describe('a playback', () => {
  it('says all of itself once, however packets are cut, doubled or swapped', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 4000 }), { maxLength: 900 }),
        fc.array(fc.record({ octets: fc.integer({ min: 1, max: 500 }), isAgain: fc.boolean() }), { maxLength: 30 }),
        fc.constantFrom<G711Codec>('PCMU', 'PCMA'),
        (samples, packets, codec) => {
          const said = Int16Array.from(samples);
          const playback = new Playback({ samples: said, over: true, onStarted: () => {}, onEnded: () => {} });
          const heard: number[] = [];
          let sequence = 65_533;
          for (const { octets, isAgain } of packets) {
            const packet = new Uint8Array(RTP_HEADER_BYTES + octets);
            const other = new Uint8Array(octets).fill(codec === 'PCMU' ? 0xff : 0xd5);
            sequence = (sequence + 1) & 0xffff;
            playback.mix('PCMU', packet, sequence, codec, other, 0);
            heard.push(...packet.subarray(RTP_HEADER_BYTES));
            const late = new Uint8Array(RTP_HEADER_BYTES + Math.ceil(octets / 2));
            if (isAgain) playback.mix('PCMU', late, (sequence - 1) & 0xffff, codec, other, 0);
          }
          const linear = new Int16Array(heard.length);
          decodeG711('PCMU', Uint8Array.from(heard), linear);
          // A-law has no zero, so the silence of the other party adds eight at the most.
          for (let i = 0; i < Math.min(heard.length, said.length); i++) {
            expect(Math.abs(linear[i]! - said[i]!)).toBeLessThanOrEqual(8 + said[i]! / 16 + 8);
          }
          expect(playback.isSpent).toBe(heard.length >= said.length);
        },
      ),
    );
  });

  it('cuts what would be too loud off instead of turning it over', () => {
    const said = new Int16Array(2000).fill(32_767);
    const playback = new Playback({ samples: said, over: true, onStarted: () => {}, onEnded: () => {} });
    const packet = new Uint8Array(RTP_HEADER_BYTES + 1400);
    // The loudest positive octet of mu-law.
    playback.mix('PCMU', packet, 1, 'PCMU', new Uint8Array(1400).fill(0x80), 0);
    expect(new Set(packet.subarray(RTP_HEADER_BYTES))).toEqual(new Set([0x80]));
  });
});

const CUSTOMER = toneFrames('PCMU', { frequenciesHz: [CUSTOMER_HZ], durationMs: 400 });
const SILENCE = new Uint8Array(FRAME_SAMPLES).fill(0xff);

/** As it comes out of a phone: through the codec, in whole frames. */
function asHeard(codec: G711Codec, samples: Int16Array): ReturnType<RtpPhone['samplesHeard']> {
  const padded = new Int16Array(Math.ceil(samples.length / FRAME_SAMPLES) * FRAME_SAMPLES);
  padded.set(samples);
  const octets = new Uint8Array(padded.length);
  encodeG711(codec, padded, octets);
  const heard = new Int16Array(padded.length);
  decodeG711(codec, octets, heard);
  return heard;
}
