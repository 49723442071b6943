import { hasKeywords } from '../../boosted-words.ts';
import type { UtteranceOptions } from '../../recognizer.ts';
import type { LetterCase } from './hotwords.ts';
import type { SherpaModel } from './model-folder.ts';
import type { OnlineModel, OnlineStream } from './online-library.ts';
import { hypothesisOf, type UnderstoodPiece } from './recognition-of-pieces.ts';
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
 * An utterance while it is spoken. As soon as it has a word of a term of which the model is not sure by itself, the
 * same audio is recognised a second time without hotwords, to tell which words are there because of them. That takes as
 * much time again, for these utterances only; what was said before is caught up with bit by bit, as other utterances of
 * the process wait meanwhile.
 */
export class StreamingUtterance {
  readonly options: UtteranceOptions;
  readonly #online: OnlineModel;
  readonly #model: SherpaModel;
  readonly #letterCase: LetterCase;
  readonly #stream: OnlineStream;
  #samples = 0;
  /** What the second recognition has still to hear; null without hotwords. */
  readonly #unheard: Int16Array[] | null;
  #unboosted: OnlineStream | null = null;

  constructor(online: OnlineModel, { model, letterCase, hotwords, options }: StreamingUtteranceOptions) {
    this.options = options;
    this.#online = online;
    this.#model = model;
    this.#letterCase = letterCase;
    this.#stream = online.createStream(hotwords);
    this.#unheard = hotwords === '' ? null : [];
  }

  write(samples: Int16Array): void {
    this.#samples += samples.length;
    this.#stream.accept(toWaveform(samples));
    if (this.#unheard === null) return;
    this.#unheard.push(samples);
    if (this.#isDoubtful()) this.#catchUp(samples.length * CATCH_UP);
  }

  understood(): UnderstoodPiece {
    return this.#pieceOf(this.#resultOf(this.#stream));
  }

  /** What is understood in the end. */
  finish(): UnderstoodPiece {
    this.#end(this.#stream);
    const understood = this.understood();
    if (this.#unheard === null || !this.#isDoubtful()) return understood;
    this.#catchUp(Number.POSITIVE_INFINITY);
    this.#end(this.#unboosted!);
    return { ...understood, unboosted: this.#resultOf(this.#unboosted!) };
  }

  /** Idempotent. */
  close(): void {
    this.#stream.close();
    this.#unboosted?.close();
  }

  /** Whether a word may be there because of the hotwords. Once it may, it stays so. */
  #isDoubtful(): boolean {
    if (this.#unboosted !== null) return true;
    const understood = this.understood();
    const { helped, said } = understood.result;
    const isDoubtful = said.logProbabilities.some((log, token) => helped[token] !== 0 && log < SURE);
    return isDoubtful && hasKeywords(hypothesisOf(understood, this.#letterCase).words, this.options.keywords);
  }

  #catchUp(samples: number): void {
    this.#unboosted ??= this.#online.createStream('');
    for (let heard = 0; heard < samples; ) {
      const block = this.#unheard!.shift();
      if (block === undefined) return;
      heard += block.length;
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
    // It tells the times of these as if each frame of their output were four of the input, as is true of the others.
    const timesScale = type === 'streaming-nemo-ctc' ? subsampling / 4 : 1;
    return parseResult(stream.result(), { timesScale });
  }

  #pieceOf(result: SherpaResult): UnderstoodPiece {
    return { startMs: 0, endMs: toMs(this.#samples), result, unboosted: null };
  }
}

/** A token of that probability was the likeliest without help, by far. */
const SURE = Math.log(0.7);
/** So many samples for each that is said. */
const CATCH_UP = 3;
const FRAME_MS = 10;
/** The last word is told by what follows it. */
const BEYOND_LAST_CHUNK_MS = 200;
