import type { RecognisedWord } from '../../machines/utterances.ts';
import {
  createDiarizer,
  type Diarizer,
  relabelled,
  type SpeakerEmbedder,
  type SpeakerTurn,
} from '../diarization/diarizer.ts';
import type { RecognitionSettings } from '../speech-recognition.ts';
import type { Utterance } from './utterance.ts';

export interface SpeakerLabelsOptions {
  mode: 'live' | 'batch';
  /** Null: voices are compared by the basic method. */
  embedder: SpeakerEmbedder | null;
  /** Called when the speaker model failed and is not used for the rest of the stream. */
  onBroken?: (detail: string) => void;
}

/** Labels the speakers of a stream, by channel or by voice. */
export class SpeakerLabels {
  readonly #mode: 'live' | 'batch';
  readonly #onBroken: SpeakerLabelsOptions['onBroken'];
  #embedder: SpeakerEmbedder | null;
  #diarizer: Diarizer | null = null;
  #settings: RecognitionSettings['diarization'] = null;

  constructor({ mode, embedder, onBroken }: SpeakerLabelsOptions) {
    this.#mode = mode;
    this.#onBroken = onBroken;
    this.#embedder = embedder;
  }

  /** Call in order, one utterance at a time; words are in stream time. */
  async label(
    utterance: Utterance,
    words: RecognisedWord[],
    settings: RecognitionSettings['diarization'],
  ): Promise<RecognisedWord[]> {
    if (settings === null) return words;
    if (settings.by === 'channel')
      return words.map((word) => ({ ...word, speaker: `speaker_${utterance.channel + 1}` }));
    const input = { samples: utterance.readAll(), startMs: utterance.startMs, words };
    try {
      return await this.#diarizerFor(settings).label(input);
    } catch (error) {
      if (this.#embedder === null) throw error;
      // Without the failed model, the rest of the stream uses the basic method.
      this.#onBroken?.(error instanceof Error ? error.message : String(error));
      this.#embedder = null;
      this.#diarizer = null;
      return await this.#diarizerFor(settings).label(input);
    }
  }

  /** Relabels the words of a batch, based on all of it; null if they are final already. */
  finish(): ((words: readonly RecognisedWord[]) => RecognisedWord[]) | null {
    const turns: SpeakerTurn[] = this.#mode === 'batch' ? (this.#diarizer?.finish() ?? []) : [];
    return turns.length === 0 ? null : (words) => relabelled(words, turns);
  }

  #diarizerFor(settings: NonNullable<RecognitionSettings['diarization']>): Diarizer {
    const { minSpeakers, maxSpeakers } = settings;
    const isSame = this.#settings?.minSpeakers === minSpeakers && this.#settings.maxSpeakers === maxSpeakers;
    if (this.#diarizer === null || !isSame) {
      const embedder = this.#embedder === null ? {} : { embedder: this.#embedder };
      this.#diarizer = createDiarizer({ mode: this.#mode, minSpeakers, maxSpeakers, ...embedder });
      this.#settings = settings;
    }
    return this.#diarizer;
  }
}
