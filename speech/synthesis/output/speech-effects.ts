import { createEffectChain, type EffectChain, isIdentity, type SpeechEffectSettings } from './effect-chain.ts';

/**
 * Effects on an engine's output, as a stream: pitch, equaliser, gain, enhancement, limiter (see `effect-chain.ts`).
 * Samples have 16-bit scale. The output has as many samples as the input, at the same times; look-ahead delays them, at
 * the latest until `flush`. Block boundaries do not matter. Neutral settings return the input at once.
 */
export interface SpeechEffects {
  /** Returns the samples ready by now: more or fewer than the input. */
  process(samples: Int16Array): Float32Array;
  /** Applies from the next sample, without a click: the old sound fades into the new one within 10 ms. */
  set(settings: SpeechEffectSettings): void;
  /** Returns the rest. Later samples start anew. */
  flush(): Float32Array;
}

export function createSpeechEffects(options: { sampleRateHz: number } & SpeechEffectSettings): SpeechEffects {
  const { sampleRateHz, ...settings } = options;
  return new FadingEffects(sampleRateHz, settings);
}

class FadingEffects implements SpeechEffects {
  readonly #sampleRateHz: number;
  readonly #fadeSamples: number;
  readonly #warmUp: WarmUp;
  /** Samples received and returned. */
  #taken = 0;
  #given = 0;
  /** The last is the current one; earlier ones are fading out. */
  #lanes: Lane[];

  constructor(sampleRateHz: number, settings: SpeechEffectSettings) {
    this.#sampleRateHz = sampleRateHz;
    this.#fadeSamples = Math.round(FADE_S * sampleRateHz);
    this.#warmUp = new WarmUp(Math.round(WARM_UP_S * sampleRateHz));
    this.#lanes = [new Lane(createEffectChain(sampleRateHz, settings), { settings, from: 0 })];
  }

  process(samples: Int16Array): Float32Array {
    const input = Float32Array.from(samples);
    this.#warmUp.add(input);
    for (const lane of this.#lanes) lane.take(input);
    this.#taken += input.length;
    return this.#give();
  }

  set(settings: SpeechEffectSettings): void {
    if (sameSettings(this.#lanes.at(-1)!.settings, settings)) return;
    const lane = new Lane(createEffectChain(this.#sampleRateHz, settings), { settings, from: this.#taken });
    lane.warmUp(this.#warmUp.samples);
    // Drops lanes that would start at this same sample.
    this.#lanes = [...this.#lanes.filter((other) => other.from < this.#taken), lane];
  }

  flush(): Float32Array {
    const settings = this.#lanes.at(-1)!.settings;
    for (const lane of this.#lanes) lane.end();
    const rest = this.#give();
    this.#warmUp.forget();
    this.#lanes = [new Lane(createEffectChain(this.#sampleRateHz, settings), { settings, from: this.#taken })];
    return rest;
  }

  #give(): Float32Array {
    const output = new Float32Array(this.#taken - this.#given);
    let filled = 0;
    while (this.#given < this.#taken) {
      const [lane, next] = this.#lanes as [Lane, Lane | undefined];
      const fadeEnd = next === undefined ? Number.POSITIVE_INFINITY : next.from + this.#fadeSamples;
      if (next !== undefined && this.#given >= fadeEnd) {
        next.skipTo(this.#given);
        this.#lanes.shift();
        continue;
      }
      const isFading = next !== undefined && this.#given >= next.from;
      const until = isFading ? Math.min(fadeEnd, next.readyTo) : (next?.from ?? Number.POSITIVE_INFINITY);
      const count = Math.min(until, lane.readyTo, this.#taken) - this.#given;
      if (count <= 0) break;
      const part = output.subarray(filled, filled + count);
      lane.read(this.#given, part);
      if (isFading) next.mixInto(this.#given, part, { fadeFrom: next.from, fadeSamples: this.#fadeSamples });
      filled += count;
      this.#given += count;
    }
    return output.subarray(0, filled);
  }
}

const FADE_S = 0.01;
/** How much sound before a change the new effects process, so that they have settled. */
const WARM_UP_S = 0.3;

/** One set of effects, from some time on. Times are samples since the beginning. */
class Lane {
  readonly settings: SpeechEffectSettings;
  readonly from: number;
  readonly #chain: EffectChain;
  /** Samples still to drop, because of the chain's delay. */
  #late: number;
  /** Processed samples not returned yet, and the time of the first. */
  #made = new Float32Array(0);
  #madeCount = 0;
  #madeFrom: number;

  constructor(chain: EffectChain, { settings, from }: { settings: SpeechEffectSettings; from: number }) {
    this.#chain = chain;
    this.settings = settings;
    this.from = from;
    this.#late = chain.delay;
    this.#madeFrom = from;
  }

  get readyTo(): number {
    return this.#madeFrom + this.#madeCount;
  }

  /** Processes samples and discards the output. */
  warmUp(samples: Float32Array): void {
    this.#late += samples.length;
    this.take(samples);
  }

  take(samples: Float32Array): void {
    const at = this.#madeCount;
    if (at + samples.length > this.#made.length) {
      const larger = new Float32Array(2 * (at + samples.length));
      larger.set(this.#made.subarray(0, at));
      this.#made = larger;
    }
    const block = this.#made.subarray(at, at + samples.length);
    block.set(samples);
    this.#chain.process(block, block.length);
    const dropped = Math.min(this.#late, block.length);
    block.copyWithin(0, dropped);
    this.#late -= dropped;
    this.#madeCount += block.length - dropped;
  }

  end(): void {
    this.take(new Float32Array(this.#chain.delay));
  }

  read(from: number, into: Float32Array): void {
    const at = from - this.#madeFrom;
    into.set(this.#made.subarray(at, at + into.length));
    this.skipTo(from + into.length);
  }

  mixInto(from: number, into: Float32Array, fade: { fadeFrom: number; fadeSamples: number }): void {
    const at = from - this.#madeFrom;
    for (let i = 0; i < into.length; i++) {
      const part = (from + i - fade.fadeFrom) / fade.fadeSamples;
      into[i] = into[i]! + part * (this.#made[at + i]! - into[i]!);
    }
  }

  skipTo(time: number): void {
    const gone = Math.max(0, Math.min(this.#madeCount, time - this.#madeFrom));
    this.#made.copyWithin(0, gone, this.#madeCount);
    this.#madeCount -= gone;
    this.#madeFrom += gone;
  }
}

/** The latest samples. */
class WarmUp {
  readonly #kept: Float32Array;
  #count = 0;

  constructor(size: number) {
    this.#kept = new Float32Array(size);
  }

  get samples(): Float32Array {
    return this.#kept.subarray(this.#kept.length - this.#count);
  }

  add(samples: Float32Array): void {
    const added = samples.subarray(Math.max(0, samples.length - this.#kept.length));
    this.#kept.copyWithin(0, added.length);
    this.#kept.set(added, this.#kept.length - added.length);
    this.#count = Math.min(this.#kept.length, this.#count + added.length);
  }

  forget(): void {
    this.#count = 0;
  }
}

function sameSettings(a: SpeechEffectSettings, b: SpeechEffectSettings): boolean {
  if (isIdentity(a) && isIdentity(b)) return true;
  const bandsOf = ({ equaliserDb }: SpeechEffectSettings) => (equaliserDb ?? []).join();
  return (
    a.pitchSemitones === b.pitchSemitones &&
    a.pitchRange === b.pitchRange &&
    a.pitchCentreHz === b.pitchCentreHz &&
    a.gainDb === b.gainDb &&
    a.enhance === b.enhance &&
    bandsOf(a) === bandsOf(b)
  );
}
