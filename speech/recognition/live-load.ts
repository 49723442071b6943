import type { EngineName } from '../recognizer.ts';

/** Load of this machine's recognizers by live streams. */
export interface LiveLoadReading {
  streams: number;
  /** Required share of the recognizers' capacity; above 1 they fall behind. */
  load: number;
  /** Load of one more stream. */
  perStream: number;
}

export interface LiveLoadOptions {
  /** Limit of local recognizers. */
  processes: number;
  /** Measured seconds of work per second of speech; null before the first recognition. */
  realTimeFactorOf: (engine: EngineName) => number | null;
  nowMs: () => number;
}

interface LiveStream {
  engine: EngineName;
  isBehind: boolean;
}

/** Above this share finals queue up. */
const MOST_BUSY = 0.85;
/** This many live streams are always opened, so that even a slow machine transcribes one call. */
export const FEWEST_STREAMS = 2;
/** Assumed until an engine has recognised something. */
const ASSUMED_REAL_TIME_FACTOR = 0.5;
/** Assumed until streams are measured: conversations have pauses. */
const ASSUMED_SPEECH_SHARE = 0.6;
/** Weight of the assumption, in stream time. */
const ASSUMED_FOR_MS = 60_000;
/** Beyond this much audio, older measurements count half. */
const MEASURED_MS = 1_200_000;

/**
 * Estimates the share of recognizer time that live streams need, from their number, their share of speech, and the
 * engines' speed.
 */
export class LiveLoad {
  readonly #options: LiveLoadOptions;
  readonly #streams = new Map<number, LiveStream>();
  /** Streams by local engine, so that a reading costs the same for any number of streams. */
  readonly #counts = new Map<EngineName, number>();
  #behind = 0;
  #streamMs = ASSUMED_FOR_MS;
  #speechMs = ASSUMED_FOR_MS * ASSUMED_SPEECH_SHARE;
  #countedAtMs: number;

  constructor(options: LiveLoadOptions) {
    this.#options = options;
    this.#countedAtMs = options.nowMs();
  }

  /** Idempotent; a stream may change its engine. */
  open(streamKey: number, engine: EngineName): void {
    const isBehind = this.#streams.get(streamKey)?.isBehind ?? false;
    this.close(streamKey);
    const stream = { engine, isBehind };
    this.#streams.set(streamKey, stream);
    this.#tally(stream, 1);
  }

  close(streamKey: number): void {
    this.#measureTime();
    const stream = this.#streams.get(streamKey);
    if (stream === undefined) return;
    this.#streams.delete(streamKey);
    this.#tally(stream, -1);
  }

  speak(streamKey: number, durationMs: number): void {
    if (this.#streams.has(streamKey)) this.#speechMs += durationMs;
  }

  setBehind(streamKey: number, isBehind: boolean): void {
    const stream = this.#streams.get(streamKey);
    if (stream === undefined) return;
    this.#tally(stream, -1);
    stream.isBehind = isBehind;
    this.#tally(stream, 1);
  }

  /** Whether one more stream can be recognised in time. */
  hasRoomFor(engine: EngineName): boolean {
    if (!isLocal(engine)) return true;
    const { streams, load } = this.read();
    return streams < FEWEST_STREAMS || load + this.#costOf(engine) <= 1;
  }

  read(): LiveLoadReading {
    this.#measureTime();
    let streams = 0;
    let needed = 0;
    for (const [engine, count] of this.#counts) {
      streams += count;
      needed += count * this.#costOf(engine);
    }
    const perStream = streams > 0 ? needed / streams : this.#cost(ASSUMED_REAL_TIME_FACTOR);
    // A stream that has fallen behind proves overload, whatever the estimate.
    return { streams, load: this.#behind > 0 ? Math.max(1, needed) : needed, perStream };
  }

  #costOf(engine: EngineName): number {
    return this.#cost(this.#options.realTimeFactorOf(engine) ?? ASSUMED_REAL_TIME_FACTOR);
  }

  #cost(realTimeFactor: number): number {
    const speechShare = Math.min(1, this.#speechMs / this.#streamMs);
    return (realTimeFactor * speechShare) / (this.#options.processes * MOST_BUSY);
  }

  #tally({ engine, isBehind }: LiveStream, change: 1 | -1): void {
    if (!isLocal(engine)) return;
    this.#counts.set(engine, (this.#counts.get(engine) ?? 0) + change);
    if (isBehind) this.#behind += change;
  }

  /** Adds the time since the last call for each stream. */
  #measureTime(): void {
    const nowMs = this.#options.nowMs();
    this.#streamMs += (nowMs - this.#countedAtMs) * this.#streams.size;
    this.#countedAtMs = nowMs;
    if (this.#streamMs < MEASURED_MS) return;
    this.#streamMs /= 2;
    this.#speechMs /= 2;
  }
}

/** Upstream servers do not use our cores. */
export function isLocal(engine: EngineName): boolean {
  return engine !== 'openai';
}
