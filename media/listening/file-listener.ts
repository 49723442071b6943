import { open } from 'node:fs/promises';
import type { FileAnalysis } from '../listening-plane.ts';
import { ChannelListener } from './channel-listener.ts';
import { channelTotals } from './channel-totals.ts';
import type { NoiseSuppressors } from './noise-suppressor.ts';
import { SampleDecoder } from './sample-decoder.ts';
import { chunkRules } from './segmentation-rules.ts';
import type { SileroNetwork } from './silero-network.ts';
import { UtterancePort } from './utterance-port.ts';
import type { ListeningCalls } from './worker-protocol.ts';

const BLOCK_SAMPLES = 16_384;
/** A file whose peak is lower is silent. */
const SILENT_BELOW_DBOV = -60;

type FileRequest = ListeningCalls['file.listen']['request'];

/** Analyses a file in blocks and posts its utterances at the pace of the recogniser. */
export class FileListener {
  readonly #request: FileRequest;
  readonly #abort = new AbortController();
  readonly #utterances: UtterancePort;
  readonly #channels: ChannelListener[];
  #nextUtteranceId = 0;

  /** @param networks one per channel, or null */
  constructor(request: FileRequest, networks: readonly (SileroNetwork | null)[], suppressors: NoiseSuppressors) {
    this.#request = request;
    this.#utterances = new UtterancePort(request.utterances);
    this.#utterances.onClosed(() => this.close());
    this.#channels = networks.map(
      (network, channel) =>
        new ChannelListener({
          channel,
          sampleRateHz: request.source.format.sampleRateHz,
          rules: chunkRules(request.minSplitMs),
          enhancement: request.enhancement,
          network,
          suppressors,
          nextUtteranceId: () => this.#nextUtteranceId++,
          post: (message) => this.#utterances.post(message),
          onSpeechStarted: () => {},
        }),
    );
  }

  /** @throws the system's error if the file cannot be read, an `AbortError` when closed at either end */
  async listen(): Promise<FileAnalysis> {
    try {
      await this.#readThrough();
      this.#utterances.post({ type: 'stream.end' });
      return {
        ...channelTotals(this.#channels),
        utterances: this.#channels.reduce((sum, { segmenter }) => sum + segmenter.utterances, 0),
        isSilent: this.#channels.every(({ peakDbov }) => peakDbov < SILENT_BELOW_DBOV),
      };
    } finally {
      for (const channel of this.#channels) channel.close();
      this.#utterances.close();
    }
  }

  close(): void {
    this.#abort.abort();
  }

  dump(): unknown {
    return { untakenSamples: this.#utterances.untakenSamples, ...channelTotals(this.#channels) };
  }

  async #readThrough(): Promise<void> {
    const { source, channels } = this.#request;
    const { signal } = this.#abort;
    const decoder = new SampleDecoder(source.format, channels);
    const outputs = [new Float32Array(BLOCK_SAMPLES), new Float32Array(BLOCK_SAMPLES)];
    const bytes = Buffer.alloc(decoder.bytesFor(BLOCK_SAMPLES));
    const end = source.offset + source.bytes;
    const file = await open(source.filePath, 'r');
    try {
      for (let at = source.offset; at < end; ) {
        const { bytesRead } = await file.read(bytes, 0, Math.min(bytes.length, end - at), at);
        signal.throwIfAborted();
        if (bytesRead === 0) break;
        at += bytesRead;
        const samples = decoder.decode(bytes.subarray(0, bytesRead), outputs);
        for (const [index, channel] of this.#channels.entries()) channel.front.push(outputs[index]!, samples);
        await this.#utterances.room(signal);
      }
    } finally {
      await file.close();
    }
    for (const channel of this.#channels) channel.finish();
  }
}
