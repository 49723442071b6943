import { describe, expect, it } from 'vitest';
import { encodeG711 } from '../../media/codecs/g711.ts';
import { levelDbov, meanPower } from '../../media/dsp/level.ts';
import { FRAME_SAMPLES, tone } from '../../media/dsp/tones.ts';
import { MixInput } from '../../media/relay/mix-input.ts';
import { largest } from './sounds.ts';

/** A frame goes through the mixer 60 ms after it was said. */
const DELAY_FRAMES = 3;
const NOISE_60_DBOV = Uint8Array.of(60);

/** A party that says a tone, or what a test wants, frame by frame; keeps what the mixer takes of it. */
class Speaker {
  readonly taken: Int16Array[] = [];
  readonly #input = new MixInput(0);
  readonly #sound = tone({ frequenciesHz: [233], durationMs: 2000 });
  #frame = 0;

  /** 20 ms of tone each: `.` arrives, `x` is lost, `-` is not sent, `n` is comfort noise, `<` comes 40 ms late. */
  say(script: string): this {
    const late: number[] = [];
    for (const event of script) {
      if (event === '.') this.#deliver(this.#frame);
      if (event === 'n') this.announce(NOISE_60_DBOV);
      for (const frame of late.splice(0, late[0] !== undefined && late[0] <= this.#frame - 2 ? 1 : 0)) {
        this.#deliver(frame);
      }
      if (event === '<') late.push(this.#frame);
      this.#frame += 1;
      this.#input.takeFrame(this.#nowMs);
      this.taken.push(this.#input.frame.slice());
    }
    return this;
  }

  announce(payload: Uint8Array): void {
    this.#input.addComfortNoise(payload, this.#packet(this.#frame, payload.length), this.#nowMs);
  }

  /** What the mixer took of the frame that was said as number `index`. */
  heardOf(index: number): Int16Array {
    return this.taken[index + DELAY_FRAMES]!;
  }

  saidIn(index: number): Int16Array {
    return this.#sound.subarray(index * FRAME_SAMPLES, (index + 1) * FRAME_SAMPLES);
  }

  dump(): Record<string, unknown> {
    return this.#input.dump() as Record<string, unknown>;
  }

  get #nowMs(): number {
    return 20 * this.#frame;
  }

  #deliver(frame: number): void {
    const octets = new Uint8Array(FRAME_SAMPLES);
    encodeG711('PCMU', this.saidIn(frame), octets);
    const audio = { codec: 'PCMU' as const, datagram: octets, samples: new Int16Array(0) };
    this.#input.addAudio(audio, this.#packet(frame, octets.length), 1e6, this.#nowMs);
  }

  #packet(frame: number, payloadBytes: number) {
    return { ssrc: 7, timestamp: frame * FRAME_SAMPLES, payloadOffset: 0, payloadBytes };
  }
}

describe('what the mixer takes of a party', () => {
  it('conceals a lost packet, and not one that comes late', () => {
    const speaker = new Speaker().say('..........x......<.......');
    expect(speaker.dump()).toMatchObject({ samplesConcealed: FRAME_SAMPLES, samplesLate: 0 });
    for (const index of [10, 17]) {
      const error = speaker.heardOf(index).map((sample, i) => sample - speaker.saidIn(index)[i]!);
      expect(meanPower(error), `frame ${index}`).toBeLessThan(0.2 * meanPower(speaker.saidIn(index)));
    }
  });

  it('fades to silence when a party stops without a word', () => {
    const speaker = new Speaker().say('..........----------');
    expect(largest(speaker.heardOf(10))).toBeGreaterThan(3000);
    expect(largest(speaker.heardOf(13))).toBe(0);
  });

  it('fills an announced pause with noise of the announced level, and ends it with the next audio', () => {
    const speaker = new Speaker().say('..........n-----------........');
    for (const index of [12, 15, 20]) {
      expect(Math.abs(levelDbov(speaker.heardOf(index)) + 60), `frame ${index}`).toBeLessThan(3);
    }
    expect(speaker.dump()).toMatchObject({ samplesConcealed: 0, isPausing: false });
    expect(meanPower(speaker.heardOf(24))).toBeGreaterThan(0.9 * meanPower(speaker.saidIn(24)));
  });

  it('takes a loss after a pause for a loss', () => {
    const speaker = new Speaker().say('.....n---......x......');
    expect(speaker.dump()).toMatchObject({ samplesConcealed: FRAME_SAMPLES, isPausing: false });
    expect(largest(speaker.heardOf(15))).toBeGreaterThan(3000);
  });

  it('keeps a second pause that was announced before the first one was over for the mixer', () => {
    const speaker = new Speaker().say('.....n-.n-----------');
    expect(speaker.dump()).toMatchObject({ samplesConcealed: 0, isPausing: true });
    expect(Math.abs(levelDbov(speaker.heardOf(12)) + 60)).toBeLessThan(3);
  });

  it('ignores comfort noise without a payload', () => {
    const speaker = new Speaker().say('.....');
    speaker.announce(new Uint8Array(0));
    expect(speaker.say('---------').dump()).toMatchObject({ isPausing: false });
  });
});
