import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type {
  AudioFormat,
  ListeningEvent,
  SamplesTaken,
  UtteranceMessage,
  UtteranceSummary,
} from '../../../machines/utterances.ts';
import type { ListeningPlane, ListeningSession, ListeningSettings } from '../../../media/listening-plane.ts';

export const MULAW_8K: AudioFormat = { encoding: 'mulaw', sampleRateHz: 8000, channels: 1 };
export const LINEAR_16K: AudioFormat = { encoding: 'linear16', sampleRateHz: 16_000, channels: 1 };

export const USUAL_SETTINGS: ListeningSettings = { format: MULAW_8K, utteranceEndMs: 1000, enhancement: 'off' };

export interface CollectedUtterance {
  utteranceId: number;
  channel: number;
  startMs: number;
  samples: number[];
  summary: UtteranceSummary | null;
  outcome: 'open' | 'end' | 'speech_end_too_short' | 'low_snr_dropped';
}

/** The recogniser's end of a listener's port: collects messages and credits samples. */
export class Recogniser {
  readonly port: MessagePort;
  readonly utterances: CollectedUtterance[] = [];
  readonly messages: UtteranceMessage[] = [];
  /** Resolves when the listener closes its end. */
  readonly closed: Promise<void>;
  isEnded = false;
  readonly #own: MessagePort;
  readonly #waiting = new Set<() => void>();
  readonly #takes: 'at once' | 'never';

  constructor(takes: 'at once' | 'never' = 'at once') {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    this.#own = port2;
    this.#takes = takes;
    this.closed = new Promise((resolve) => port2.once('close', () => resolve()));
    port2.on('message', (message: UtteranceMessage) => this.#hear(message));
  }

  async until(condition: (recogniser: this) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  get samplesPosted(): number {
    return this.utterances.reduce((sum, { samples }) => sum + samples.length, 0);
  }

  take(samples: number): void {
    this.#own.postMessage({ type: 'samples.taken', samples } satisfies SamplesTaken);
  }

  close(): void {
    this.#own.close();
  }

  #hear(message: UtteranceMessage): void {
    this.messages.push(message);
    if (message.type === 'stream.end') this.isEnded = true;
    else if (message.type === 'utterance.begin') {
      const { utteranceId, channel, startMs } = message;
      this.utterances.push({ utteranceId, channel, startMs, samples: [], summary: null, outcome: 'open' });
    } else {
      const utterance = this.utterances.find(({ utteranceId }) => utteranceId === message.utteranceId);
      if (utterance === undefined) throw new RangeError(`utterance ${message.utteranceId} did not begin`);
      if (message.type === 'utterance.audio') {
        for (const sample of message.samples) utterance.samples.push(sample);
        if (this.#takes === 'at once') this.take(message.samples.length);
      } else if (message.type !== 'utterance.pause') {
        utterance.summary = message.summary;
        utterance.outcome = message.type === 'utterance.end' ? 'end' : message.reason;
      }
    }
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

export interface LiveListening {
  session: ListeningSession;
  recogniser: Recogniser;
  events: ListeningEvent[];
  owner: AbortController;
  untilEvent: (type: ListeningEvent['type']) => Promise<void>;
}

export async function listenLive(
  plane: ListeningPlane,
  settings: Partial<ListeningSettings> & { inlet?: MessagePort; onAnalysed?: (analysedMs: number) => void } = {},
): Promise<LiveListening> {
  const recogniser = new Recogniser();
  const events: ListeningEvent[] = [];
  const owner = new AbortController();
  let wake = (): void => {};
  const session = await plane.open({
    ...USUAL_SETTINGS,
    ...settings,
    sessionId: 'session',
    utterances: recogniser.port,
    signal: owner.signal,
    onEvent: (event) => {
      events.push(event);
      wake();
    },
  });
  const untilEvent = async (type: ListeningEvent['type']): Promise<void> => {
    while (!events.some((event) => event.type === type)) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return { session, recogniser, events, owner, untilEvent };
}

/** Writes a stream in frames, as telephony clients do. */
export function writeInFrames(session: ListeningSession, bytes: Uint8Array, frameBytes = 480): void {
  for (let at = 0; at < bytes.length; at += frameBytes) session.write(bytes.slice(at, at + frameBytes));
}

export function joined(...pieces: Int16Array[]): Int16Array<ArrayBuffer> {
  const whole = new Int16Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

export function silence(durationMs: number, sampleRateHz = 16_000): Int16Array<ArrayBuffer> {
  return new Int16Array(Math.round((durationMs * sampleRateHz) / 1000));
}

export function bytesOf(samples: Int16Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(samples.slice().buffer);
}
