import { hasKeywords } from '../../boosted-words.ts';
import type { UtteranceOptions } from '../../recognizer.ts';
import type { LetterCase } from './hotwords.ts';
import type { SherpaModel } from './model-folder.ts';
import type { OnlineModel, OnlineStream } from './online-library.ts';
import { hypothesisOf, type RecognisedPiece } from './recognition-of-pieces.ts';
import { parseResult, type SherpaResult } from './sherpa-result.ts';
import { silence, toMs, toWaveform } from './utterance-audio.ts';

export interface StreamingUtteranceOptions {
  model: SherpaModel;
  letterCase: LetterCase;
  /** '' for none. */
  hotwords: string;
  options: UtteranceOptions;
}

/**
 * An utterance being recognised. Once it contains an uncertain word of a keyword, the same audio is also decoded
 * without hotwords, to find the words that result from them. That doubles the work for these utterances only. Earlier
 * audio is caught up step by step, because other utterances of the process wait meanwhile.
 */
export class StreamingUtterance {
  readonly options: UtteranceOptions;
  readonly #online: OnlineModel;
  readonly #model: SherpaModel;
  readonly #letterCase: LetterCase;
  readonly #stream: OnlineStream;
  #samples = 0;
  /** Audio that the second decoding has yet to process; null without hotwords. */
  readonly #backlog: Int16Array[] | null;
  #unboosted: OnlineStream | null = null;

  constructor(online: OnlineModel, { model, letterCase, hotwords, options }: StreamingUtteranceOptions) {
    this.options = options;
    this.#online = online;
    this.#model = model;
    this.#letterCase = letterCase;
    this.#stream = online.createStream(hotwords);
    this.#backlog = hotwords === '' ? null : [];
  }

  write(samples: Int16Array): void {
    this.#samples += samples.length;
    this.#stream.accept(toWaveform(samples));
    if (this.#backlog === null) return;
    this.#backlog.push(samples);
    if (this.#isDoubtful()) this.#catchUp(samples.length * CATCH_UP);
  }

  /** Returns the interim result. */
  resultSoFar(): RecognisedPiece {
    return this.#pieceOf(this.#resultOf(this.#stream));
  }

  /** Returns the final result. */
  finish(): RecognisedPiece {
    this.#end(this.#stream);
    const piece = this.resultSoFar();
    if (this.#backlog === null || !this.#isDoubtful()) return piece;
    this.#catchUp(Number.POSITIVE_INFINITY);
    this.#end(this.#unboosted!);
    return { ...piece, unboosted: this.#resultOf(this.#unboosted!) };
  }

  /** Idempotent. */
  close(): void {
    this.#stream.close();
    this.#unboosted?.close();
  }

  /** Whether a word may result from the hotwords. Never returns to false. */
  #isDoubtful(): boolean {
    if (this.#unboosted !== null) return true;
    const piece = this.resultSoFar();
    const { helped, said } = piece.result;
    const isDoubtful = said.logProbabilities.some((log, token) => helped[token] !== 0 && log < SURE);
    return isDoubtful && hasKeywords(hypothesisOf(piece, this.#letterCase).words, this.options.keywords);
  }

  #catchUp(samples: number): void {
    this.#unboosted ??= this.#online.createStream('');
    for (let accepted = 0; accepted < samples; ) {
      const block = this.#backlog!.shift();
      if (block === undefined) return;
      accepted += block.length;
      this.#unboosted.accept(toWaveform(block));
    }
  }

  #end(stream: OnlineStream): void {
    if (this.#samples === 0) return;
    stream.accept(silence(this.#model.chunkFrames * FRAME_MS + BEYOND_LAST_CHUNK_MS));
    stream.finish();
  }

  #resultOf(stream: OnlineStream): SherpaResult {
    const { type, subsampling } = this.#model;
    // sherpa-onnx computes the times of these models as if each output frame were four input frames, as in other
    // models.
    const timesScale = type === 'streaming-nemo-ctc' ? subsampling / 4 : 1;
    return parseResult(stream.result(), { timesScale });
  }

  #pieceOf(result: SherpaResult): RecognisedPiece {
    return { startMs: 0, endMs: toMs(this.#samples), result, unboosted: null };
  }
}

/** A token of that probability was by far the likeliest even without a boost. */
const SURE = Math.log(0.7);
/** Samples caught up per new sample. */
const CATCH_UP = 3;
const FRAME_MS = 10;
/** The last word is only decoded with audio after it. */
const BEYOND_LAST_CHUNK_MS = 200;
