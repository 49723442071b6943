import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { ListeningSettings, StreamHeard } from '../listening-plane.ts';
import { littleEndianBytes } from '../recording/recording-file.ts';
import { SampleRing } from '../sample-ring.ts';
import { ChannelListener } from './channel-listener.ts';
import { heardTotals } from './heard-totals.ts';
import type { NoiseSuppressors } from './noise-suppressor.ts';
import { SampleDecoder } from './sample-decoder.ts';
import { liveRules } from './segmentation-rules.ts';
import type { SileroNetwork } from './silero-network.ts';
import { UtterancePort } from './utterance-port.ts';
import { HEARD_EVERY_MS, type ListeningReport } from './worker-protocol.ts';

const BLOCK_SAMPLES = 4096;
/** Taken from an inlet; the listeners of a thread take turns. */
const waiting = new Int16Array(BLOCK_SAMPLES);

interface LiveListenerOptions {
  settings: ListeningSettings;
  utterances: MessagePort;
  inlet: MessagePort | null;
  network: SileroNetwork | null;
  suppressors: NoiseSuppressors;
  onEvent: (event: ListeningReport) => void;
  /** What came through the inlet could not be heard. */
  onBroken: (error: unknown) => void;
}

/** Hears one live stream, a stereo one as the mean of its channels, and posts its utterances. */
export class LiveListener {
  readonly #utterances: UtterancePort;
  readonly #inlet: MessagePort | null;
  readonly #listener: ChannelListener;
  readonly #block = new Float32Array(BLOCK_SAMPLES);
  readonly #outputs = [this.#block];
  readonly #onBroken: (error: unknown) => void;
  /** What the inlet brings; null before its memory is here. */
  #ring: SampleRing | null = null;
  #settings: ListeningSettings;
  #decoder: SampleDecoder;
  readonly #report: (event: ListeningReport) => void;
  #nextUtteranceId = 0;
  #heardMs = 0;
  #toldMs = 0;

  constructor(options: LiveListenerOptions) {
    this.#utterances = new UtterancePort(options.utterances);
    this.#report = options.onEvent;
    this.#settings = options.settings;
    this.#decoder = new SampleDecoder(options.settings.format, 'mixed');
    this.#listener = new ChannelListener({
      channel: 0,
      sampleRateHz: options.settings.format.sampleRateHz,
      rules: liveRules(options.settings.utteranceEndMs),
      enhancement: options.settings.enhancement,
      network: options.network,
      suppressors: options.suppressors,
      nextUtteranceId: () => this.#nextUtteranceId++,
      post: (message) => this.#utterances.post(message),
      onSpeechStarted: (utteranceId, atMs) => options.onEvent({ type: 'speech.started', utteranceId, atMs }),
    });
    this.#onBroken = options.onBroken;
    this.#inlet = options.inlet;
    this.#inlet?.on('message', (memory: SharedArrayBuffer) => {
      try {
        this.#listenTo(memory);
      } catch (error) {
        options.onBroken(error);
      }
    });
  }

  write(bytes: Uint8Array): void {
    this.#hear(bytes);
    this.#heardMs += (bytes.length / this.#decoder.bytesFor(this.#settings.format.sampleRateHz)) * 1000;
    if (this.#heardMs - this.#toldMs < HEARD_EVERY_MS) return;
    this.#toldMs = this.#heardMs;
    this.#report({ type: 'audio.heard', heardMs: this.#heardMs });
  }

  /** Hears what waits in the inlet. Call it again and again. */
  listen(): void {
    try {
      this.#hearInlet();
    } catch (error) {
      this.#onBroken(error);
    }
  }

  /** The memory of a ring tells its rate. */
  #listenTo(memory: SharedArrayBuffer): void {
    const ring = new SampleRing(memory);
    const { format } = this.#settings;
    if (ring.sampleRateHz !== format.sampleRateHz) {
      this.configure({ format: { ...format, sampleRateHz: ring.sampleRateHz } });
    }
    this.#ring = ring;
  }

  #hearInlet(): void {
    if (this.#ring === null) return;
    for (let count = this.#ring.read(waiting); count > 0; count = this.#ring.read(waiting)) {
      // Hearing takes long enough for more to come; that is for the next time.
      this.#hear(littleEndianBytes(waiting.subarray(0, count)));
      if (count < waiting.length) return;
    }
  }

  #hear(bytes: Uint8Array): void {
    const blockBytes = this.#decoder.bytesFor(BLOCK_SAMPLES);
    for (let at = 0; at < bytes.length; at += blockBytes) {
      const samples = this.#decoder.decode(bytes.subarray(at, at + blockBytes), this.#outputs);
      this.#listener.front.push(this.#block, samples);
    }
  }

  /** Up to a window of the latest audio counts as what follows. */
  endUtterance(): void {
    this.#hearInlet();
    this.#listener.segmenter.endUtterance();
  }

  configure(change: Partial<ListeningSettings>): void {
    const settings = { ...this.#settings, ...change };
    if (change.format !== undefined) {
      this.#decoder = new SampleDecoder(settings.format, 'mixed');
      this.#listener.front.setRate(settings.format.sampleRateHz);
    }
    if (change.utteranceEndMs !== undefined) this.#listener.segmenter.configure(liveRules(settings.utteranceEndMs));
    if (change.enhancement !== undefined) this.#listener.front.setEnhancement(change.enhancement);
    this.#settings = settings;
  }

  /** Hears what waits in the inlet, ends the open utterance and the stream. */
  finish(): StreamHeard {
    const posted = this.#inlet === null ? undefined : receiveMessageOnPort(this.#inlet);
    if (posted !== undefined) this.#listenTo(posted.message as SharedArrayBuffer);
    this.#hearInlet();
    this.#listener.finish();
    this.#utterances.post({ type: 'stream.end' });
    this.close();
    return heardTotals([this.#listener]);
  }

  close(): void {
    this.#listener.close();
    this.#inlet?.close();
    this.#utterances.close();
  }

  dump(): unknown {
    const { untakenSamples } = this.#utterances;
    const isSpeaking = this.#listener.segmenter.isOpen;
    return {
      ...this.#settings,
      ...heardTotals([this.#listener]),
      noiseSuppression: this.#listener.front.dump(),
      isSpeaking,
      untakenSamples,
    };
  }
}
