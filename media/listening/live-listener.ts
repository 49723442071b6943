import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { ListeningSettings, StreamAnalysis } from '../listening-plane.ts';
import { littleEndianBytes } from '../recording/recording-file.ts';
import { SampleRing } from '../sample-ring.ts';
import { ChannelListener } from './channel-listener.ts';
import { channelTotals } from './channel-totals.ts';
import type { NoiseSuppressors } from './noise-suppressor.ts';
import { SampleDecoder } from './sample-decoder.ts';
import { liveRules } from './segmentation-rules.ts';
import type { SileroNetwork } from './silero-network.ts';
import { UtterancePort } from './utterance-port.ts';
import { ANALYSED_EVERY_MS, type ListeningReport } from './worker-protocol.ts';

const BLOCK_SAMPLES = 4096;
/** Input from an inlet, shared by the listeners of a thread. */
const waiting = new Int16Array(BLOCK_SAMPLES);

interface LiveListenerOptions {
  settings: ListeningSettings;
  utterances: MessagePort;
  inlet: MessagePort | null;
  network: SileroNetwork | null;
  suppressors: NoiseSuppressors;
  onEvent: (event: ListeningReport) => void;
  onBroken: (error: unknown) => void;
}

/** Analyses one live stream, a stereo one as the mean of its channels, and posts its utterances. */
export class LiveListener {
  readonly #utterances: UtterancePort;
  readonly #inlet: MessagePort | null;
  readonly #listener: ChannelListener;
  readonly #block = new Float32Array(BLOCK_SAMPLES);
  readonly #outputs = [this.#block];
  readonly #onBroken: (error: unknown) => void;
  /** Ring of the inlet; null until its memory arrives. */
  #ring: SampleRing | null = null;
  #settings: ListeningSettings;
  #decoder: SampleDecoder;
  readonly #report: (event: ListeningReport) => void;
  #nextUtteranceId = 0;
  #analysedMs = 0;
  #reportedMs = 0;

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
    this.#analyse(bytes);
    this.#analysedMs += (bytes.length / this.#decoder.bytesFor(this.#settings.format.sampleRateHz)) * 1000;
    if (this.#analysedMs - this.#reportedMs < ANALYSED_EVERY_MS) return;
    this.#reportedMs = this.#analysedMs;
    this.#report({ type: 'audio.analysed', analysedMs: this.#analysedMs });
  }

  /** Processes the audio in the inlet. Called periodically. */
  listen(): void {
    try {
      this.#analyseInlet();
    } catch (error) {
      this.#onBroken(error);
    }
  }

  /** The ring sets the sample rate. */
  #listenTo(memory: SharedArrayBuffer): void {
    const ring = new SampleRing(memory);
    const { format } = this.#settings;
    if (ring.sampleRateHz !== format.sampleRateHz) {
      this.configure({ format: { ...format, sampleRateHz: ring.sampleRateHz } });
    }
    this.#ring = ring;
  }

  #analyseInlet(): void {
    if (this.#ring === null) return;
    for (let count = this.#ring.read(waiting); count > 0; count = this.#ring.read(waiting)) {
      // Audio that arrives meanwhile is left to the next call.
      this.#analyse(littleEndianBytes(waiting.subarray(0, count)));
      if (count < waiting.length) return;
    }
  }

  #analyse(bytes: Uint8Array): void {
    const blockBytes = this.#decoder.bytesFor(BLOCK_SAMPLES);
    for (let at = 0; at < bytes.length; at += blockBytes) {
      const samples = this.#decoder.decode(bytes.subarray(at, at + blockBytes), this.#outputs);
      this.#listener.front.push(this.#block, samples);
    }
  }

  /** The latest audio, up to a window, belongs to the next utterance. */
  endUtterance(): void {
    this.#analyseInlet();
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

  /** Processes the audio in the inlet, then ends the open utterance and the stream. */
  finish(): StreamAnalysis {
    const posted = this.#inlet === null ? undefined : receiveMessageOnPort(this.#inlet);
    if (posted !== undefined) this.#listenTo(posted.message as SharedArrayBuffer);
    this.#analyseInlet();
    this.#listener.finish();
    this.#utterances.post({ type: 'stream.end' });
    this.close();
    return channelTotals([this.#listener]);
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
      ...channelTotals([this.#listener]),
      noiseSuppression: this.#listener.front.dump(),
      isSpeaking,
      untakenSamples,
    };
  }
}
